import pytest
from campaigns import CAMPAIGNS


@pytest.fixture
def campaigns(request):
    return request.config.stash[CAMPAIGNS]

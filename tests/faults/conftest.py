import pytest
from campaigns import CAMPAIGNS, few_row_blocks


@pytest.fixture
def campaigns(request):
    return request.config.stash[CAMPAIGNS]


@pytest.fixture(scope="module")
def few_blocks():
    with few_row_blocks():
        yield

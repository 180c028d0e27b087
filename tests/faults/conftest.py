import pytest
from campaigns import CAMPAIGNS
from killable_cluster import killable_cluster


@pytest.fixture
def campaigns(request):
    return request.config.stash[CAMPAIGNS]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Workers that are killed, and come back for whoever kills them next."""
    with killable_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running

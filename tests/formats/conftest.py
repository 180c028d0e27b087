import pytest
from campaigns import few_row_blocks

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run


@pytest.fixture(scope="module")
def embedded_run():
    """Jobs on threads of this process, on stores of few row blocks."""
    with few_row_blocks(), connect() as cluster:
        yield Run(cluster)

"""A cluster that starts at its first use, so a job without work starts none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster


class _LateCluster:
    """Proxy that starts the cluster when an attribute is first read, and returns its attributes."""

    def __init__(self, started: Callable[[], Cluster]) -> None:
        self._started = started
        self._cluster: Cluster | None = None

    def __getattr__(self, name: str) -> Any:
        if self._cluster is None:
            self._cluster = self._started()
        return getattr(self._cluster, name)


@contextmanager
def late_cluster(start: Callable[[], AbstractContextManager[Cluster]]) -> Iterator[Cluster]:
    """Yield a cluster that starts at its first use.

    `start` returns a context such as `connect`; its errors are raised at the first use.

    Examples
    --------
    >>> from contextlib import nullcontext
    >>> with late_cluster(lambda: nullcontext(print("started"))) as cluster:
    ...     print("nothing to do")
    nothing to do
    """
    with ExitStack() as stack:
        yield cast("Cluster", _LateCluster(lambda: stack.enter_context(start())))

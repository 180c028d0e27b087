"""List, for each kind, how its stores are created and rebased."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.kinds.base import KindJobs, Redraw
from streaming_moments.pipelines.jobs.kinds.counts import COUNTS
from streaming_moments.pipelines.jobs.kinds.edges import EDGES
from streaming_moments.pipelines.jobs.kinds.sequences import SEQUENCES
from streaming_moments.pipelines.jobs.kinds.sets import SETS
from streaming_moments.pipelines.jobs.kinds.vectors import VECTORS
from streaming_moments.pipelines.jobs.kinds.views import VIEWS
from streaming_moments.storage.store.snapshot import Snapshot, lacks_vocabulary

_ALL: tuple[KindJobs, ...] = (COUNTS, VIEWS, SEQUENCES, VECTORS, EDGES, SETS)
KIND_JOBS: Mapping[str, KindJobs] = MappingProxyType({one.foundation.kind: one for one in _ALL})


def redraw_of(store: Snapshot) -> Redraw:
    """Return how a store is rebased; raises InvalidInput for kinds that cannot be rebased."""
    found = KIND_JOBS[store.kind].redraw
    if found is None:
        raise InvalidInput(lacks_vocabulary(store))
    return found

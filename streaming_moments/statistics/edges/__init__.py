"""Edges of a graph in any order: for each node what it is joined with, exact and additive."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("kernels",))

if TYPE_CHECKING:
    from streaming_moments.statistics.edges.ends import EdgeBatch as EdgeBatch
    from streaming_moments.statistics.edges.foundation import EdgesFoundation as EdgesFoundation

"""Edges of a graph in any order: exact additive sums over each node's neighbours."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("kernels",))

if TYPE_CHECKING:
    from streaming_moments.statistics.edges.ends import EdgeBatch as EdgeBatch
    from streaming_moments.statistics.edges.foundation import EdgesFoundation as EdgesFoundation

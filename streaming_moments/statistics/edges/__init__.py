"""Edges of a graph in any order: for each node what it is joined with, exact and additive."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.edges.ends import EdgeBatch
    from streaming_moments.statistics.edges.foundation import EdgesFoundation

__all__ = ["EdgeBatch", "EdgesFoundation"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {"ends": ("EdgeBatch",), "foundation": ("EdgesFoundation",)},
        modules=("kernels",),
    )

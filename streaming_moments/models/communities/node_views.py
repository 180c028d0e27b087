"""Node views: the edges of a node to three parts of a graph are three views of its memberships.

Given the memberships of a node, its edges to different parts are independent, so the sketches of
these edges are three views (Anandkumar, Ge, Hsu, Kakade 2014). All three views are sketched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.views import (
    contracted,
    row_pairs,
    whiten_row_view,
    whiten_sides,
    whitened_tensor,
)
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.edges.ends import PARTS, part_name
from streaming_moments.statistics.views.statistics import ViewStatistics

# The nodes of a graph are split into three parts, numbered 0 to 2. Edges to part 2 are the rows
# view, edges to part 0 the left view, and edges to part 1 the right view.
_ROWS, _LEFT, _RIGHT = 2, 0, 1
_STRIP = 512
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class ExpectedEnds:
    """Expected edges of a node that belongs to a single community, as sketches.

    frames : (t, t) float64 matrix for each of the three parts of the graph, which maps a sketched
        row `[c; Q' x]` to coordinates in an orthonormal basis
    columns : (3 t, k) float64, expected edges of a member of each community to the nodes of the
        first, second and third part, in these coordinates
    spectrum : (k,) float64, singular values of the pair moments of the left and right views
    """

    frames: tuple[NDArray[np.float64], ...]
    columns: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    __sizeof__ = held_bytes


def expected_ends(rows: Rows, sketch: Basis, k: int, alpha0: float) -> ExpectedEnds:
    """Estimate the expected edges of members of k communities, in one sweep over all rows.

    Raises NotIdentifiable if the edges identify fewer communities than k.
    """
    frames = part_frames(sketch)
    width = 1 + len(frames[0])
    summed = rows.summed("node views", _cubes, frames, nbytes=8 * width**3)
    found: ExpectedEnds = rows.value(rows.once("communities", _told, summed, frames, k, alpha0))
    return found


def part_frames(sketch: Basis) -> tuple[NDArray[np.float64], ...]:
    """Return a (t, t) matrix Z for each of the three parts of the graph.

    Over the nodes of a part, the columns of `[1, Q] Z` are orthonormal. Raises NotIdentifiable if a
    part has fewer nodes than `[1, Q]` has columns.
    """
    frames = []
    for part in range(PARTS):
        Q = sketch.matrix[part::PARTS]
        own = np.zeros((len(range(part, sketch.n_words, PARTS)), 1 + sketch.columns))
        own[:, 0], own[: len(Q), 1:] = 1.0, Q
        triangle = np.linalg.qr(own, mode="r")
        sizes = np.abs(np.diag(triangle))
        if len(own) < own.shape[1] or sizes.min() <= _ROUNDING * sizes.max():
            raise NotIdentifiable(
                f"a part of the graph has {len(own)} nodes, too few for {own.shape[1]} columns of "
                "its sketch",
                "give fewer {create.sketch_columns}",
            )
        frames.append(np.asarray(np.linalg.inv(triangle), dtype=np.float64))
    return tuple(frames)


def turned_ends(
    statistics: ViewStatistics, frames: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Return (r, t) sketched edges of a block's nodes to each part of the graph.

    They are in the coordinates of `frames`.
    """
    return [statistics.sums[part_name(part)] @ frame for part, frame in enumerate(frames)]


def _cubes(
    statistics: ViewStatistics, frames: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sum the products of the three views over the nodes: (1 + t, 1 + t, 1 + t) float64."""
    ends = turned_ends(statistics, frames)
    views = [np.hstack([np.ones((len(one), 1)), one]) for one in ends]
    width = views[0].shape[1]
    total = np.zeros((width, width * width))
    for start in range(0, len(views[0]), _STRIP):
        rows, left, right = (views[part][start : start + _STRIP] for part in (_ROWS, _LEFT, _RIGHT))
        total += rows.T @ (left[:, :, None] * right[:, None, :]).reshape(len(rows), -1)
    return total.reshape(width, width, width)


def _told(
    cubes: NDArray[np.float64], frames: tuple[NDArray[np.float64], ...], k: int, alpha0: float
) -> ExpectedEnds:
    t = len(cubes) - 1
    same = np.eye(t)
    sides = whiten_sides(cubes[0], same, same, k, alpha0)
    slices = cubes[1:]
    whitened = whiten_row_view(row_pairs(slices, sides), sides)
    sums = contracted(slices, whitened.W)
    tensor = whitened_tensor(whitened, sums / sides.triples)
    O = by_joint_diagonalization(tensor)
    # The columns of O are known up to their signs. The sum of a sketched column can be negative, so
    # it does not show the sign. Choose the sign for which the tensor is positive along the column.
    O = O * np.where(np.einsum("abc,aj,bj,cj->j", tensor, O, O, O) < 0, -1.0, 1.0)
    shares = (O.T @ (sums[:, 0, 0] / sides.triples)) ** 2
    if not (shares > _ROUNDING * shares.sum()).all():
        raise NotIdentifiable(
            f"{int((shares <= _ROUNDING * shares.sum()).sum())} of {k} communities have no nodes; "
            "fit fewer communities"
        )
    own = shares / shares.sum() / (alpha0 + 1)
    rows = whitened.pairs @ O / np.sqrt(own)
    # The pair moments of the rows view and the left or right view are a product of two matrices:
    # the weighted columns of the rows view times the columns of the side view.
    share, dual = alpha0 / (alpha0 + 1), np.linalg.pinv(rows) / own[:, None]
    means = slices / sides.triples
    left = means[:, 1:, 0] - share * np.outer(means[:, 0, 0], sides.sums[1:, 0])
    right = means[:, 0, 1:] - share * np.outer(means[:, 0, 0], sides.sums[0, 1:])
    columns = {_ROWS: rows, _LEFT: (dual @ left).T, _RIGHT: (dual @ right).T}
    stacked = np.vstack([columns[part] for part in range(PARTS)])
    return ExpectedEnds(frames, stacked, sides.spectrum)

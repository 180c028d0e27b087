"""Three views: fits a mixture to records of three columns (views), and sketches two of them.

The method is that of Anandkumar, Ge, Hsu, Kakade, Telgarsky, "Tensor decompositions for learning
latent variable models" (JMLR 15, 2014), section 3.3. It makes the moments symmetric on the rows
view: the view whose values are not sketched, that is, not projected to few columns. Views are
independent given the hidden state. So, unlike word counts, their moments need no correction for
pairs of a word with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.svtd import Recovered, recover
from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.remedies import remedy

# Singular values below this share of the largest one are rounding errors.
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class SideWhitening:
    """Whitening of the two sketched views, left and right: it projects sketches to k directions.

    alpha0 : sum of the Dirichlet parameters; 0 for a mixture
    triples : C, the number of triples of values, one of each view. All moments are means over
        triples.
    sums : (1 + s_l, 1 + s_r) float64 `sum_i T_i / C`, where T_i is the slice of row i
    left, right : (1 + s_l, k), (1 + s_r, k) float64, matrices that turn the slices T of all rows
        into the whitened pairs of the rows view with the left view, `E = T[:, :, 0] left / C`, and
        with the right view, `F = T[:, 0] right / C`
    spectrum : (k,) float64, singular values of the moment of pairs of a left and a right value
    """

    alpha0: float
    triples: float
    sums: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    __sizeof__ = held_bytes

    @property
    def k(self) -> int:
        """Number of hidden states."""
        return self.spectrum.size


@dataclass(frozen=True, eq=False)
class RowWhitening:
    """Whitening of the rows view: `W' Pairs W = I` with `Pairs = E F' = M diag(w) M'`.

    M are the columns of the hidden states in the rows view, and w their weights. E and F are as in
    `SideWhitening`.

    sides : whitening of the other two views
    W : (n, k) float64, the whitening
    pairs : (n, k) float64 `Pairs W`. M is `Pairs W O` up to the scale of its columns, for a
        rotation O.
    left, right : (s_l, k), (s_r, k) float64 L and R, which whiten slices: `L' T_i R` is `O D O'`
        with a diagonal D
    """

    sides: SideWhitening
    W: NDArray[np.float64]
    pairs: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]

    __sizeof__ = held_bytes


def frame(matrix: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the (s, s) matrix Z for which the columns of `Q Z` are orthonormal; Q is (core, s)."""
    triangle = np.linalg.qr(matrix.astype(np.float64), mode="r")
    return np.asarray(np.linalg.inv(triangle), dtype=np.float64)


def whiten_sides(
    sums: NDArray[Any],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    k: int,
    alpha0: float = 0.0,
) -> SideWhitening:
    """Whiten the two sketched views, left and right, for a fit of k states.

    sums : sum of the slices of all rows
    left, right : results of `frame` for the two views

    Raises NotIdentifiable if there are no triples, if a sketch has fewer columns than there are
    states, or if fewer than k singular values exceed rounding.
    """
    most = min(len(left), len(right))
    if k > most:
        raise NotIdentifiable(
            f"{k} states need sketches of at least {k} columns, but these have {most}",
            remedy(
                "ask for at most {most}, or give a larger {create.max_topics} or more "
                "{create.sketch_columns}",
                most=most,
            ),
        )
    triples = float(sums[0, 0])
    if triples <= 0:
        raise NotIdentifiable(
            "no counted record has all three views, or three observed symbols in a row; count "
            "more records"
        )
    means, share = sums / triples, alpha0 / (alpha0 + 1)
    centred = means[1:, 1:] - share * np.outer(means[1:, 0], means[0, 1:])
    U, spectrum, V = np.linalg.svd(left.T @ centred @ right)
    if not np.isfinite(spectrum).all() or spectrum[k - 1] <= _ROUNDING * spectrum[0]:
        told = int((spectrum > _ROUNDING * spectrum[0]).sum())
        raise NotIdentifiable(
            f"the left and right views are correlated in {told} directions, but {k} states need "
            f"{k}; "
            f"ask for {told}, or count more records"
        )
    scale = 1 / np.sqrt(spectrum[:k])
    turned = left @ (U[:, :k] * scale), right @ (V[:k].T * scale)
    sides = [
        np.vstack([-share * mean @ side, side])
        for mean, side in zip((means[1:, 0], means[0, 1:]), turned, strict=True)
    ]
    return SideWhitening(alpha0, triples, means, sides[0], sides[1], spectrum[:k])


def row_pairs(slices: NDArray[Any], sides: SideWhitening) -> NDArray[np.float64]:
    """Return (r, 2 k) rows of E and F (see `SideWhitening`), side by side, for r slices."""
    left = slices[:, :, 0] @ sides.left / sides.triples
    right = slices[:, 0] @ sides.right / sides.triples
    return np.hstack([left, right])


def whiten_row_view(pairs: NDArray[np.float64], sides: SideWhitening) -> RowWhitening:
    """Whiten the rows view; `pairs` are all rows of E and F, side by side.

    Raises NotIdentifiable if fewer than k eigenvalues are positive.
    """
    k = sides.k
    E, F = pairs[:, :k], pairs[:, k:]
    Q, triangle = np.linalg.qr(pairs)
    core = triangle[:, :k] @ triangle[:, k:].T
    values, vectors = np.linalg.eigh((core + core.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = int((values > _ROUNDING * np.abs(values).max(initial=1e-300)).sum())
    if positive < k:
        raise NotIdentifiable(
            f"{k} states are asked for, but pairs of the data separate only {positive} (positive "
            f"eigenvalues); ask for at most {positive}, or count more records"
        )
    W = Q @ (vectors[:, :k] / np.sqrt(values[:k]))
    left, right = F.T @ W, E.T @ W
    # leave out the first row, which belongs to the constant column: `whitened_tensor` multiplies
    # slices without this column
    return RowWhitening(
        sides, W, (E @ left + F @ right) / 2, sides.left[1:] @ left, sides.right[1:] @ right
    )


def contracted(slices: NDArray[Any], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k, 1 + s_l, 1 + s_r) sum of `W_i T_i` over rows i.

    W_i is the row of the whitening W, and T_i the slice.
    """
    rows, *rest = slices.shape
    product = W.T @ slices.reshape(rows, -1).astype(np.float64)
    return np.asarray(product.reshape(-1, *rest))


def recovered(
    whitened: RowWhitening, sums: NDArray[np.float64]
) -> tuple[Recovered, NDArray[np.bool_]]:
    """Return the columns of the rows view with their weights, ordered by weight, and a mask.

    `sums` is the sum of the results of `contracted` over all rows. Columns are computed from the
    pairs, `Y = Pairs W O`. If each view has one token, the measured error of these columns is a
    third less than that of columns from the slices.

    The tensor determines the sign of a column. If the sum of the column is negative with this sign,
    the sign is reversed, and the (k,) bool mask is True for this column, because it is unreliable.
    Raises NotIdentifiable if the sum of a column is zero, because it is then not a distribution.
    """
    sides = whitened.sides
    tensor = whitened_tensor(whitened, sums / sides.triples)
    O = by_joint_diagonalization(tensor)
    # The columns of O are known up to sign. Choose the sign with which the tensor is positive along
    # the column. The sum of a sketched column does not show the sign, because it may be negative.
    O = O * np.where(np.einsum("abc,aj,bj,cj->j", tensor, O, O, O) < 0, -1.0, 1.0)
    shares = (O.T @ (sums[:, 0, 0] / sides.triples)) ** 2
    columns = whitened.pairs @ O
    totals = columns.sum(axis=0)
    none = ~(np.abs(totals) > _ROUNDING * np.abs(columns).sum(axis=0))
    if none.any():
        raise NotIdentifiable(
            f"{int(none.sum())} of {sides.k} states have columns with sum 0; ask for "
            "fewer states, or count more records"
        )
    found = recover(columns / totals, shares)
    return found, (totals < 0)[found.order]


def whitened_tensor(whitened: RowWhitening, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the whitened (k, k, k) tensor `sum_j o_j (x) o_j (x) o_j w_j^-1/2` of k states.

    The tensor is corrected for a Dirichlet prior, whose parameters have the sum alpha0.
    """
    sides, L, R = whitened.sides, whitened.left, whitened.right
    alpha0 = sides.alpha0
    slices = np.einsum("ipq,pa,qb->iab", means[:, 1:, 1:], L, R, optimize=True)
    if alpha0:
        first = means[:, 0, 0]
        z_left, z_right = sides.sums[1:, 0] @ L, sides.sums[0, 1:] @ R
        middle = L.T @ sides.sums[1:, 1:] @ R
        crossed = np.einsum("i,ab->iab", first, middle)
        crossed += np.einsum("ia,b->iab", means[:, 1:, 0] @ L, z_right)
        crossed += np.einsum("ib,a->iab", means[:, 0, 1:] @ R, z_left)
        cubes = np.einsum("i,a,b->iab", first, z_left, z_right)
        slices -= alpha0 / (alpha0 + 2) * crossed
        slices += 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * cubes
        slices *= (alpha0 + 2) / 2
    return np.asarray(sum(slices.transpose(order) for order in permutations(range(3))) / 6)


def side_columns(
    rows: NDArray[np.float64],
    totals: NDArray[np.float64],
    sketched: NDArray[np.float64],
    alpha0: float = 0.0,
) -> NDArray[np.float64]:
    """Return r rows of the (rows, k) columns of another view than the rows view.

    Each column is known up to a factor.

    rows : (r, 1 + s) float64 `sum x [c; Q' x_rows]'` for r rows (words) of the other view
    totals : (1 + s,) float64, sum over all rows of the other view
    sketched : (s, k) float64 `Q' M`, the sketched columns M of the rows view
    alpha0 : sum of the Dirichlet parameters
    """
    share = alpha0 / (alpha0 + 1)
    centred = rows[:, 1:] - share * np.outer(rows[:, 0], totals[1:] / totals[0])
    return np.asarray(centred @ np.linalg.pinv(sketched).T)

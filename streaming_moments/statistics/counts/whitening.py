"""Whitening: linear map that makes the model's second moment the identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, Mixture
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.krylov import leading_eigenpairs
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import remedy
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.row_block import interleaved

# iterations stop when one more block increases the eigenvalues by a smaller share than this
_TOLERANCE = 1e-7
_MOST_BLOCKS = 24
# number of rows that are converted to float64 at a time; with 32,768 core words they take 64 MB
_ROWS = 256


@dataclass(frozen=True, eq=False)
class CoreMoments:
    """First and second moments inside the core, which whitening needs.

    pair_counts : (core, core) int64 P inside the core; float64 if documents are weighted
    word_counts : (core,) int64, weighted counts of the core words; float64 likewise
    length_histogram : lengths of the documents, from which C1, C2 and C3 of a form follow
    """

    pair_counts: NDArray[Any]
    word_counts: NDArray[Any]
    length_histogram: Lengths

    @classmethod
    def of(cls, statistics: Statistics) -> CoreMoments:
        """Return the core moments of statistics of all rows, without copying them."""
        core = statistics.basis.core
        pairs, counts = statistics.pair_counts[:core], statistics.moment_counts[:core]
        return cls(pairs, counts, statistics.row_lengths.whole)

    @classmethod
    def joined(cls, parts: Sequence[NDArray[Any]], lengths: Lengths) -> CoreMoments:
        """Join the `core_rows` of all row blocks, in order."""
        joined = interleaved(parts)
        return cls(joined[:, :-1], joined[:, -1], lengths)


@dataclass(frozen=True, eq=False)
class CoreMomentsByRows:
    """Core moments whose pair counts do not fit on one worker, and are multiplied row by row.

    `word_counts` and lengths are as in `CoreMoments`.
    """

    pair_counts: PairsByRows
    word_counts: NDArray[Any]
    length_histogram: Lengths


@dataclass(frozen=True, eq=False)
class PairsByRows:
    """Pair counts `P / divisor` as a matrix that is not stored, but can be multiplied by others.

    `product` multiplies (core, m) float64 by `P / divisor`. The divisor is C2.
    """

    product: Callable[[NDArray[np.float64], float], NDArray[np.float64]]
    divisor: float = 1.0

    def __truediv__(self, divisor: float) -> PairsByRows:
        return PairsByRows(self.product, self.divisor * divisor)

    def __matmul__(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.product(block, self.divisor)


def core_product(
    parts: NDArray[Any], block: NDArray[np.float64], divisor: float
) -> NDArray[np.float64]:
    """Multiply rows of `P / divisor` by a (core, m) block; the pair counts P are from `core_rows`.

    To save memory, only a few rows at a time are converted to floating point.
    """
    product = np.empty((len(parts), block.shape[1]))
    for start in range(0, len(parts), _ROWS):
        part = slice(start, start + _ROWS)
        product[part] = parts[part, :-1] / divisor @ block
    return product


def core_rows(statistics: Statistics) -> NDArray[Any]:
    """Copy the pair counts and word counts of the core rows of a block, (core rows, core + 1)."""
    rows = statistics.block.size(statistics.basis.core)
    counts = statistics.moment_counts[:rows, None]
    return np.hstack([statistics.pair_counts[:rows], counts])


AnyCoreMoments = CoreMoments | CoreMomentsByRows


@dataclass(frozen=True, eq=False)
class Whitening:
    """`W = Q B` with `W' A W = I`, where A is the model's second moment inside the core.

    coefficients : (s, k) float64 B
    vectors : (core, k) float64 W
    spectrum : (k,) float64, eigenvalues L of A projected on the basis, decreasing
    exact_spectrum : (k,) float64, the k largest eigenvalues of A itself, decreasing
    first : (k,) float64 `u = W' M1`
    second : (k, k) float64 `S = W' M2 W`
    images : (core, k) float64 `M2 W`, so that no later step multiplies the pair counts of the core
    form : form of the model
    """

    coefficients: NDArray[np.float64]
    vectors: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    exact_spectrum: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    images: NDArray[np.float64]
    form: Form

    __sizeof__ = held_bytes

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        return int(self.spectrum.size)

    @property
    def captured(self) -> float:
        """Smallest ratio of an entry of `spectrum` to the same entry of `exact_spectrum`.

        Near 1, the basis captures all topics; near 0, it misses a topic.
        """
        return float((self.spectrum / self.exact_spectrum).min())

    def leading(self, n_topics: int) -> Whitening:
        """Return the whitening for fewer topics: the leading columns of this whitening."""
        k = n_topics
        return Whitening(
            self.coefficients[:, :k],
            self.vectors[:, :k],
            self.spectrum[:k],
            self.exact_spectrum[:k],
            self.first[:k],
            self.second[:k, :k],
            self.images[:, :k],
            self.form,
        )


def whiten(
    core: AnyCoreMoments,
    basis: Basis,
    n_topics: int,
    form: Form = Mixture(),
    seen: SeenMoments | None = None,
) -> Whitening:
    """Whiten the second moment `A = M2 - a M1 M1'` of the form on the basis.

    The whitening is `W = Q B`. With `Q = Qo R` and the k leading eigenpairs (V, L) of `Qo' A Qo`,
    `B = R^-1 V L^-1/2`. In Ruffini et al. 2018, Theorem 3 defines A, and line 2 of Algorithm 1 the
    whitening.

    The basis is Q, (core, s), and k is at most s. `seen` is the result of `seen_through` for the
    same moments, if it is known. Raises NotIdentifiable if there are more topics than columns of
    the basis, or than positive eigenvalues.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
    >>> P = np.array([[20, 4, 0], [4, 20, 0], [0, 0, 12]])
    >>> core = CoreMoments(P, np.array([12, 12, 6]), LengthHistogram.of([3] * 10))
    >>> whitening = whiten(core, Basis(np.eye(3, dtype=np.int8), 3), n_topics=2)
    >>> np.allclose(whitening.vectors.T @ (P / 60) @ whitening.vectors, np.eye(2))
    True
    """
    require_topics(n_topics)
    require_columns(n_topics, basis)
    M1, M2 = _moments(core, form)
    seen = seen or SeenMoments.of(M1, M2, basis)
    whitened = seen.whitened(basis, n_topics, form)
    guess = seen.orthonormal @ seen.eigenpairs(form)[1][:, :n_topics]
    exact = _leading_eigenvalues(M2, M1, form.mean_share, n_topics, guess)
    return replace(whitened, exact_spectrum=exact)


def positive_eigenvalues(core: AnyCoreMoments, basis: Basis, form: Form = Mixture()) -> int:
    """Return how many topics `whiten` can find: as many as A has positive eigenvalues on the basis.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
    >>> core = CoreMoments(np.diag([20, 20, 0]), np.array([12, 12, 6]), LengthHistogram.of([3] * 9))
    >>> positive_eigenvalues(core, Basis(np.eye(3, dtype=np.int8), 3))
    2
    """
    return positive(seen_through(core, basis, form).eigenpairs(form)[0])


def require_columns(n_topics: int, basis: Basis) -> None:
    """Raise NotIdentifiable for more topics than the basis has columns."""
    if n_topics > basis.columns:
        # a basis cannot have more columns than core words, so the core must grow too
        larger = f"{{rebase.max_topics:{n_topics}}}"
        if n_topics > basis.core:
            larger = "a larger {rebase.max_topics} and {rebase.core}"
        raise NotIdentifiable(
            f"{n_topics:,} topics are asked for, but the basis has {basis.columns:,} columns",
            remedy(
                f"ask for at most {{columns}}, or raise the limit by {larger}",
                columns=basis.columns,
            ),
        )


def require_eigenvalues(n_topics: int, positive: int, form: Form) -> None:
    """Raise NotIdentifiable for more topics than positive eigenvalues."""
    if positive < n_topics:
        raise NotIdentifiable(
            f"{n_topics} topics are asked for, but the second moment has "
            f"{of_number(positive, 'positive eigenvalue')} (alpha0 {form.alpha0:g}); "
            f"ask for at most {positive}, lower alpha0, or add documents"
        )


@dataclass(frozen=True, eq=False)
class SeenMoments:
    """Moments projected on the basis Q, which is factored as `Q = orthonormal triangle`.

    All forms of models with the same C1, C2 and C3 can use them. The arrays are float64: (core, s)
    `orthonormal`, (core, s) `images = M2 orthonormal`, (s, s) `triangle` and `pairs`, and (s,)
    `mean`.
    """

    orthonormal: NDArray[np.float64]
    triangle: NDArray[np.float64]
    mean: NDArray[np.float64]
    images: NDArray[np.float64]
    pairs: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls, M1: NDArray[np.float64], M2: NDArray[np.float64] | PairsByRows, basis: Basis
    ) -> SeenMoments:
        """Project (core,) first and (core, core) second moments on a basis."""
        orthonormal, triangle = np.linalg.qr(basis.matrix.astype(np.float64))
        images = M2 @ orthonormal
        return cls(orthonormal, triangle, orthonormal.T @ M1, images, orthonormal.T @ images)

    def eigenpairs(self, form: Form) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return decreasing eigenvalues and (s, s) eigenvectors of a form's second moment A."""
        projected = self.pairs - form.mean_share * np.outer(self.mean, self.mean)
        values, vectors = np.linalg.eigh((projected + projected.T) / 2)
        order = np.argsort(-values)
        return values[order], vectors[:, order]

    def whitened(self, basis: Basis, n_topics: int, form: Form) -> Whitening:
        """Return the whitening of a form; its `exact_spectrum` is a copy of the projected spectrum.

        Raises NotIdentifiable if there are fewer positive eigenvalues than topics.
        """
        from scipy.linalg import solve_triangular

        values, vectors = self.eigenpairs(form)
        require_eigenvalues(n_topics, positive(values), form)
        spectrum = values[:n_topics]
        scaled = vectors[:, :n_topics] / np.sqrt(spectrum)
        coefficients = solve_triangular(self.triangle, scaled)
        return Whitening(
            coefficients,
            basis.matrix @ coefficients,
            spectrum,
            spectrum,
            scaled.T @ self.mean,
            scaled.T @ self.pairs @ scaled,
            self.images @ scaled,
            form,
        )


def positive(values: NDArray[np.float64]) -> int:
    """Return the number of eigenvalues above rounding errors."""
    # eigenvalues below the rounding error of the largest one are noise, not topics
    rounding = values.max() * values.size * np.finfo(float).eps
    return int((values > max(rounding, 0.0)).sum())


def seen_through(core: AnyCoreMoments, basis: Basis, form: Form) -> SeenMoments:
    """Project the moments inside the core on a basis; of the form, only C1, C2 and C3 matter.

    Raises NotIdentifiable if no document has three words.
    """
    return SeenMoments.of(*_moments(core, form), basis)


def _moments(
    core: AnyCoreMoments, form: Form
) -> tuple[NDArray[np.float64], NDArray[np.float64] | PairsByRows]:
    C1, C2, C3 = form.totals(core.length_histogram)
    if not C2 or not C3:
        raise NotIdentifiable(
            f"none of the {core.length_histogram.n_documents} documents has three vocabulary "
            "words; add longer documents"
        )
    return core.word_counts / C1, core.pair_counts / C2


def _leading_eigenvalues(
    M2: NDArray[np.float64] | PairsByRows,
    M1: NDArray[np.float64],
    ratio: float,
    number: int,
    guess: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the `number` largest eigenvalues of `M2 - ratio M1 M1'`, decreasing."""
    core = M1.size
    if core <= 256 or number * 4 >= core:
        whole = M2 @ np.eye(core) if isinstance(M2, PairsByRows) else M2
        A = whole - ratio * np.outer(M1, M1)
        return np.linalg.eigvalsh(A).astype(np.float64)[::-1][:number].copy()
    # start from `guess`, the projected eigenvectors, so that a few products by M2 suffice
    values, _ = leading_eigenpairs(
        lambda block: M2 @ block - ratio * np.outer(M1, M1 @ block), guess, _TOLERANCE, _MOST_BLOCKS
    )
    return values

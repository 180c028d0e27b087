"""Every decomposition by its name, on given moments and on statistics, with one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.least_squares import by_alternating_least_squares
from streaming_moments.moments import Moments
from streaming_moments.power_method import by_power_method
from streaming_moments.slices import rotated_diagonals
from streaming_moments.svtd import Recovered, RotationEvidence, finish, recover, svtd
from streaming_moments.topic_model import TopicModel
from streaming_moments.weighted import Statistics
from streaming_moments.whitened_tensor import (
    Components,
    WhitenedMoments,
    unwhitened_rows,
    whiten_moments,
    whitened_tensor,
)
from streaming_moments.whitening import CoreMoments, Whitening, whiten

Method = Literal["joint", "feature", "power", "svd", "eigen", "als"]
METHODS: tuple[Method, ...] = get_args(Method)

TensorMethod = Callable[[WhitenedMoments, np.random.Generator], Components]


def decompose(moments: Moments, k: int, method: Method = "joint", seed: int = 0) -> Recovered:
    """Decompose given moments by the method of that name.

    - "joint": SVTD, O by joint diagonalisation of k sums of slices, along the eigenvectors of M2.
    - "feature": SVTD, O from the slice of the widest gap (Ruffini et al. 2018, Remark 7). Needs a
      slice whose k singular values are distinct.
    - "power": tensor power method with deflation (Anandkumar, Ge et al. 2014).
    - "svd": Excess Correlation Analysis (Anandkumar, Foster et al. 2012). Needs k distinct
      eigenvalues in the one direction that the seed draws.
    - "eigen": eigenvectors of an observable operator (Anandkumar, Hsu, Kakade 2012). Needs real,
      distinct eigenvalues in that direction.
    - "als": alternating least squares on the whitened tensor (Sharan and Valiant 2017).

    SVTD reads row i of the columns off slice i of the third moment (with "joint" on given
    moments its mean with the projection on the range of M2); the other methods go back from the
    components (v_j, lambda_j) of the whitened tensor by `m_j = lambda_j (W')^+ v_j`. The
    weights are `(v_j . W' M1)^2`, scaled to sum 1, for all of them.

    Parameters
    ----------
    moments : Moments
        In the form of a mixture; `dirichlet_moments` brings those of LDA to it. All methods but
        "eigen" take them symmetrised.
    k : int
        Number of latent states.
    method : str
        A name of `METHODS`.
    seed : int
        Of the random directions and starts; the same moments and seed give the same columns.

    Returns
    -------
    Recovered
        Columns of positive sum, by falling weight.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues, or the method cannot tell the k states apart.
    InvalidInput
        An unknown method, k below 1 or a negative seed.

    Examples
    --------
    >>> M, w = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), np.array([0.6, 0.4])
    >>> moments = Moments.of_mixture(M, w)
    >>> [np.allclose(decompose(moments, 2, method).topics, M) for method in METHODS]
    [True, True, True, True, True, True]
    """
    require_method(method, seed)
    if method == "joint" or method == "feature":
        even = moments.symmetrized()
        return svtd(even.M1, even.M2, even.M3, k, method)
    whitened, W = whiten_moments(moments, k)
    found = TENSOR_METHODS[method](whitened, np.random.default_rng(seed))
    # U L^1/2, the pseudo-inverse of W'
    back = W * whitened.spectrum
    return recover(back @ found.vectors * found.values, (found.vectors.T @ (W.T @ moments.M1)) ** 2)


def fit_by(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    method: Method = "joint",
    seed: int = 0,
) -> TopicModel:
    """Topics from the statistics alone, by the decomposition of that name.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        All rows.
    n_topics : int
        k, from 1 to the columns of the basis.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 fits the single-topic model.
    method : str
        As in `decompose`; "joint" and "feature" are `streaming_moments.fit`. The others see the
        k x k x k tensor of the stored sketch, and go back to all words by the pair counts.
    seed : int
        As in `decompose`.

    Returns
    -------
    TopicModel
        Its `rotation` is the name of the method.

    Raises
    ------
    NotIdentifiable
        Fewer than k columns or positive eigenvalues, or the method cannot tell the topics apart.
    InvalidInput
        Statistics of a part of the rows, or an argument out of range.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit_by(statistics, n_topics=2, method="power").topics.round(2)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 0.5],
           [0. , 0.5]])
    """
    require_method(method, seed)
    whitening = whiten(CoreMoments.of(statistics), statistics.basis, n_topics, alpha0)
    directions = Evidence.of(statistics, whitening, method).directions(whitening, seed)
    return finish(
        directions.rows(statistics, whitening),
        directions.vectors,
        statistics.word_counts,
        statistics.row_lengths,
        statistics.basis,
        whitening,
        method,
    )


@dataclass(frozen=True, eq=False)
class Directions:
    """The topics in whitened coordinates, and how words are given to them.

    Parameters
    ----------
    vectors : (k, k) float64
        A unit column for each topic.
    values : (k,) float64 or None
        Of the components of the whitened tensor. None for SVTD, which reads the topics off the
        slices.
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64] | None

    def rows(self, statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
        """(r, k) rows of the topic matrix for a block of r rows, each row alone."""
        if self.values is None:
            return rotated_diagonals(statistics, whitening, self.vectors)
        return unwhitened_rows(statistics, whitening) @ self.vectors * self.values


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the slices of some rows say about the directions: adds up over row blocks.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    gathered : RotationEvidence or (k, k, k) float64
        The latter, the whitened third moment, for all methods but "joint" and "feature".
    """

    method: Method
    gathered: RotationEvidence | NDArray[np.float64]

    @classmethod
    def zero(cls, n_topics: int, method: Method) -> Evidence:
        """No slices seen."""
        if method == "joint" or method == "feature":
            return cls(method, RotationEvidence.zero(n_topics, method))
        return cls(method, np.zeros((n_topics, n_topics, n_topics)))

    @classmethod
    def of(cls, statistics: Statistics, whitening: Whitening, method: Method) -> Evidence:
        """Evidence of a block of rows."""
        if method == "joint" or method == "feature":
            return cls(method, RotationEvidence.of(statistics, whitening, method))
        return cls(method, whitened_tensor(statistics, whitening))

    def __add__(self, other: Evidence) -> Evidence:
        one, two = self.gathered, other.gathered
        if isinstance(one, RotationEvidence) and isinstance(two, RotationEvidence):
            return Evidence(self.method, one + two)
        if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
            return Evidence(self.method, one + two)
        raise InvalidInput(
            f'evidence for "{self.method}" and "{other.method}" does not add up; gather it for one '
            "method"
        )

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        if isinstance(self.gathered, RotationEvidence):
            return self.gathered.n_topics
        return int(self.gathered.shape[0])

    def leading(self, n_topics: int) -> Evidence:
        """Evidence for fewer topics, by the leading columns of the same whitening.

        Raises
        ------
        InvalidInput
            For "feature", whose slice is chosen for one number of topics.
        """
        if isinstance(self.gathered, RotationEvidence):
            return Evidence(self.method, self.gathered.leading(n_topics))
        k = n_topics
        return Evidence(self.method, self.gathered[:k, :k, :k])

    def directions(self, whitening: Whitening, seed: int = 0) -> Directions:
        """The directions that the evidence of all rows gives.

        Parameters
        ----------
        whitening : Whitening
            Of the same statistics.
        seed : int
            As in `decompose`.

        Raises
        ------
        NotIdentifiable
            The method cannot tell the topics apart.
        """
        if isinstance(self.gathered, RotationEvidence):
            return Directions(self.gathered.rotation(), None)
        whitened = WhitenedMoments(self.gathered, np.eye(whitening.n_topics), whitening.spectrum)
        found = TENSOR_METHODS[self.method](whitened, np.random.default_rng(seed))
        return Directions(found.vectors, found.values)


def by_random_direction(whitened: WhitenedMoments, rng: np.random.Generator) -> Components:
    """Excess Correlation Analysis (Anandkumar, Foster, Hsu, Kakade, Liu 2012, Algorithm 2).

    The second of its two singular value decompositions: of `T(I, I, theta)`, theta uniform on the
    unit sphere. That matrix is symmetric, so its eigenvectors are its singular vectors, and they
    tell apart singular values that differ in sign only.

    Parameters
    ----------
    whitened : WhitenedMoments
        Its tensor is taken symmetric: the mean over all orders of its indices.
    rng : numpy.random.Generator
        Draws theta.

    Returns
    -------
    Components
        Orthogonal vectors.

    Raises
    ------
    NotIdentifiable
        Two eigenvalues agree to rounding, so their vectors are not determined.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> np.sort(np.abs(by_random_direction(whitened, np.random.default_rng(0)).values))
    array([2., 3.])
    """
    tensor = whitened.symmetrized().tensor
    theta = rng.standard_normal(whitened.n_topics)
    values, vectors = np.linalg.eigh(tensor @ (theta / np.linalg.norm(theta)))
    _require_gap(values, "Excess Correlation Analysis")
    return Components.along(tensor, vectors)


def by_eigenvectors(whitened: WhitenedMoments, rng: np.random.Generator) -> Components:
    """Eigenvectors of an observable operator (Anandkumar, Hsu, Kakade 2012, Algorithm A).

    `B(eta) = (U' M3(eta) V) (U' M2 V)^-1` has the eigenvectors `U' m_j`, with the eigenvalues
    `eta . m_j`; `eta = U theta`, theta uniform on the unit sphere. The words of a document are
    exchangeable, so U = V spans all three views: here the k leading eigenvectors of M2. In
    whitened coordinates, which change the eigenvectors by `L^-1/2` only, B is
    `T(I, I, L^1/2 theta) (W' M2 W)^-1`.

    Of symmetric moments B is similar to a symmetric matrix, and its eigenvalues are real. Moments
    that take the words of a document in their order, as the algorithm has them, promise that only
    in the limit.

    Parameters
    ----------
    whitened : WhitenedMoments
        Symmetric or not.
    rng : numpy.random.Generator
        Draws theta.

    Returns
    -------
    Components
        Vectors not orthogonal in general.

    Raises
    ------
    NotIdentifiable
        Complex eigenvalues, or two that agree to rounding: no real, distinct eigenvectors.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> np.sort(np.abs(by_eigenvectors(whitened, np.random.default_rng(0)).values))
    array([2., 3.])
    """
    theta = rng.standard_normal(whitened.n_topics)
    theta /= np.linalg.norm(theta)
    seen = whitened.tensor @ (np.sqrt(whitened.spectrum) * theta)
    operator = scipy.linalg.solve(whitened.second.T, seen.T).T
    values, vectors = scipy.linalg.eig(operator)
    rounding = np.abs(values).max() * values.size * np.sqrt(np.finfo(float).eps)
    complex_ones = values[np.abs(values.imag) > rounding]
    if complex_ones.size:
        listed = ", ".join(f"{value:.3g}" for value in complex_ones[:4])
        raise NotIdentifiable(
            f"{complex_ones.size} of {values.size} eigenvalues are complex ({listed}): the moments "
            "are too far from a mixture; symmetrise them, add documents, ask for fewer topics, or "
            "use another seed"
        )
    _require_gap(np.sort(values.real), "the eigenvector method")
    return Components.along(whitened.symmetrized().tensor, vectors.real)


TENSOR_METHODS: Mapping[str, TensorMethod] = MappingProxyType(
    {
        "power": by_power_method,
        "svd": by_random_direction,
        "eigen": by_eigenvectors,
        "als": by_alternating_least_squares,
    }
)


def require_method(method: str, seed: int) -> None:
    """Refuse a name that is none of `METHODS`, or a negative seed."""
    if method not in METHODS:
        raise InvalidInput(f'method is "{method}"; choose {", ".join(METHODS)}')
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be at least 0")


def _require_gap(rising: NDArray[np.float64], name: str) -> None:
    """Refuse (k,) rising eigenvalues of which two agree to rounding."""
    gaps = np.diff(rising)
    rounding = np.abs(rising).max() * rising.size * np.finfo(float).eps
    if gaps.size and not gaps.min() > rounding:
        raise NotIdentifiable(
            f"two of {rising.size} eigenvalues agree to rounding (gap {gaps.min():.1g}), so "
            f"{name} cannot tell their topics apart; use another seed, ask for fewer topics, or "
            'use method "joint"'
        )

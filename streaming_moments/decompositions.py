"""Every decomposition by its name, on given moments and on statistics, with one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.least_squares import by_alternating_least_squares
from streaming_moments.moments import Moments
from streaming_moments.power_method import by_power_method
from streaming_moments.statistics import MomentStatistics
from streaming_moments.svtd import Recovered, finish, fit, recover, svtd
from streaming_moments.topic_model import TopicModel
from streaming_moments.whitened_tensor import (
    Components,
    WhitenedMoments,
    unwhitened_rows,
    whiten_moments,
    whitened_tensor,
)
from streaming_moments.whitening import CoreMoments, whiten

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
    rng = _generator(method, seed)
    if method == "joint" or method == "feature":
        even = moments.symmetrized()
        return svtd(even.M1, even.M2, even.M3, k, method)
    whitened, W = whiten_moments(moments, k)
    found = TENSOR_METHODS[method](whitened, rng)
    # U L^1/2, the pseudo-inverse of W'
    back = W * whitened.spectrum
    return recover(back @ found.vectors * found.values, (found.vectors.T @ (W.T @ moments.M1)) ** 2)


def fit_by(
    statistics: MomentStatistics,
    n_topics: int,
    alpha0: float = 0.0,
    method: Method = "joint",
    seed: int = 0,
) -> TopicModel:
    """Topics from the statistics alone, by the decomposition of that name.

    Parameters
    ----------
    statistics : MomentStatistics
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
    >>> from streaming_moments import Basis, CountBatch
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit_by(statistics, n_topics=2, method="power").topics.round(2)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 0.5],
           [0. , 0.5]])
    """
    rng = _generator(method, seed)
    if method == "joint" or method == "feature":
        return fit(statistics, n_topics, alpha0, method)
    if statistics.block.step != 1:
        raise InvalidInput(
            f"the statistics hold row block {statistics.block.index} of {statistics.block.step}; "
            "merge all blocks first"
        )
    core, histogram = statistics.basis.core, statistics.length_histogram
    pairs, counts = statistics.pair_counts[:core], statistics.word_counts[:core]
    whitening = whiten(CoreMoments(pairs, counts, histogram), statistics.basis, n_topics, alpha0)
    tensor = whitened_tensor(statistics, whitening)
    whitened = WhitenedMoments(tensor, np.eye(n_topics), whitening.spectrum)
    found = TENSOR_METHODS[method](whitened, rng)
    rows = unwhitened_rows(statistics, whitening) @ found.vectors * found.values
    words, basis = statistics.word_counts, statistics.basis
    model = finish(rows, found.vectors, words, histogram, basis, whitening, "joint")
    return replace(model, rotation=method)


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


def _generator(method: Method, seed: int) -> np.random.Generator:
    if method not in METHODS:
        raise InvalidInput(f'method is "{method}"; choose {", ".join(METHODS)}')
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be at least 0")
    return np.random.default_rng(seed)


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

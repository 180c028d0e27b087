"""SVTD: singular value based tensor decomposition, on given moments and on statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.lengths import Lengths
from streaming_moments.packing import pack, unpack
from streaming_moments.rotation import (
    GapCandidate,
    by_feature_gap,
    by_joint_diagonalization,
)
from streaming_moments.row_lengths import RowLengths, quotients
from streaming_moments.simplex import nearest_distributions
from streaming_moments.slices import rotated_diagonals, whitened_slices
from streaming_moments.topic_model import TopicModel
from streaming_moments.weighted import Statistics
from streaming_moments.whitened_tensor import whitened_tensor
from streaming_moments.whitening import CoreMoments, Whitening, require_topics, whiten

Rotation = Literal["joint", "feature"]


@dataclass(frozen=True, eq=False)
class RotationEvidence:
    """What the slices of some rows say about the rotation: adds up over row blocks.

    Parameters
    ----------
    n_topics : int
        k.
    sums : (k, k, k) float64 or None
        Sums of slices along the k leading eigenvectors of M2, `sum_i u_i (x) H_i`, for "joint".
    candidate : GapCandidate or None
        Slice of the widest gap, for "feature".
    """

    n_topics: int
    sums: NDArray[np.float64] | None
    candidate: GapCandidate | None

    @classmethod
    def zero(cls, n_topics: int, rotation: Rotation) -> RotationEvidence:
        """No slices seen; `rotation` chooses what is gathered."""
        if rotation == "joint":
            return cls(n_topics, np.zeros((n_topics, n_topics, n_topics)), None)
        if rotation == "feature":
            return cls(n_topics, None, GapCandidate.zero(n_topics))
        raise InvalidInput(f'rotation is "{rotation}"; choose "joint" or "feature"')

    @classmethod
    def of(
        cls, statistics: Statistics, whitening: Whitening, rotation: Rotation
    ) -> RotationEvidence:
        """Evidence of a block of rows."""
        k = whitening.n_topics
        zero = cls.zero(k, rotation)
        if zero.sums is not None:
            # W = U L^-1/2: the rows of U are those of W times the roots of the spectrum
            scale = np.sqrt(whitening.spectrum)[:, None, None]
            return cls(k, scale * whitened_tensor(statistics, whitening), None)
        candidates = (GapCandidate.of(h, k) for h in whitened_slices(statistics, whitening))
        return cls(k, None, sum(candidates, GapCandidate.zero(k)))

    @classmethod
    def of_slices(
        cls,
        slices: NDArray[np.float64],
        directions: NDArray[np.float64],
        rotation: Rotation,
    ) -> RotationEvidence:
        """Evidence of (rows, k (k + 1) / 2) packed slices; directions (rows, k) are U."""
        k = directions.shape[1]
        if cls.zero(k, rotation).sums is not None:
            return cls(k, unpack(directions.T @ slices, k), None)
        return cls(k, None, GapCandidate.of(slices, k))

    def __add__(self, other: RotationEvidence) -> RotationEvidence:
        sums = None if self.sums is None or other.sums is None else self.sums + other.sums
        candidate = (
            None
            if self.candidate is None or other.candidate is None
            else self.candidate + other.candidate
        )
        return RotationEvidence(self.n_topics, sums, candidate)

    def leading(self, n_topics: int) -> RotationEvidence:
        """Evidence for fewer topics, whose slices are the leading blocks of these.

        Raises
        ------
        InvalidInput
            For "feature", whose slice is chosen for one number of topics.
        """
        if self.sums is None:
            raise InvalidInput(
                f"the slice of the widest gap was chosen for {self.n_topics} topics; gather the "
                f"evidence for {n_topics}"
            )
        return RotationEvidence(n_topics, self.sums[:n_topics, :n_topics, :n_topics], None)

    def rotation(self) -> NDArray[np.float64]:
        """(k, k) O, by joint diagonalisation or by the widest gap."""
        if self.sums is not None:
            return by_joint_diagonalization(self.sums)
        return by_feature_gap([] if self.candidate is None else [self.candidate])


@dataclass(frozen=True, eq=False)
class Recovered:
    """Topics and weights in canonical order.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex, the nearest to those of `raw`, by falling weight.
    weights : (k,) float64
        Non-negative, sum to 1.
    raw : (n, k) float64
        The columns as they were estimated, same order, signed to a positive sum.
    """

    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    raw: NDArray[np.float64]


def fit(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    rotation: Rotation = "joint",
) -> TopicModel:
    """Topics from the statistics alone: the serial refit.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        All rows.
    n_topics : int
        k, from 1 to the columns of the basis.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 fits the single-topic model.
    rotation : {"joint", "feature"}
        Joint diagonalisation of k sums of slices, or the paper's Remark 7.

    Raises
    ------
    NotIdentifiable
        Fewer than k columns or positive eigenvalues.
    InvalidInput
        Statistics of a part of the rows, or an argument out of range.

    Examples
    --------
    >>> from streaming_moments.basis import Basis
    >>> from streaming_moments.counts import CountBatch
    >>> from streaming_moments.statistics import MomentStatistics
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit(statistics, n_topics=2).topics.round(2)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 0.5],
           [0. , 0.5]])
    """
    whitening = whiten(CoreMoments.of(statistics), statistics.basis, n_topics, alpha0)
    O = RotationEvidence.of(statistics, whitening, rotation).rotation()
    rows = rotated_diagonals(statistics, whitening, O)
    return finish(
        rows,
        O,
        statistics.word_counts,
        statistics.row_lengths,
        statistics.basis,
        whitening,
        rotation,
    )


def finish(
    rows: NDArray[np.float64],
    O: NDArray[np.float64],
    word_counts: NDArray[Any],
    lengths: RowLengths[Lengths],
    basis: Basis,
    whitening: Whitening,
    method: str,
) -> TopicModel:
    """The model from all (n, k) rows, the rotation O and (n,) word counts: a refit's last step.

    `method` is the name of the decomposition; the unit columns of O need not be orthogonal. A word
    that came later has its share of the tokens since, and all shares add up to 1 again.
    """
    C1, _, _ = lengths.constants(np.arange(basis.n_words))
    M1 = quotients(word_counts.astype(np.float64), C1)
    if lengths.later:
        M1 = M1 / M1.sum()
    recovered = recover(rows, (O.T @ whitening.first) ** 2)
    return TopicModel(
        topics=recovered.topics,
        weights=recovered.weights,
        alpha0=whitening.alpha0,
        raw_topics=recovered.raw,
        word_probabilities=M1,
        spectrum=whitening.spectrum.copy(),
        exact_spectrum=whitening.exact_spectrum.copy(),
        umass=np.full(whitening.n_topics, np.nan),
        npmi=np.full(whitening.n_topics, np.nan),
        rotation=method,
        documents=lengths.whole.n_documents,
        vocabulary=basis.vocabulary,
        basis=basis.fingerprint,
    )


def svtd(
    M1: NDArray[np.float64],
    M2: NDArray[np.float64],
    M3: NDArray[np.float64],
    k: int,
    rotation: Rotation = "joint",
) -> Recovered:
    """Decompose given moments of any latent variable model (Ruffini et al. 2018, Algorithm 1).

    The moments are `M1 = sum_j w_j m_j`, `M2 = sum_j w_j m_j m_j'`, `M3 = sum_j w_j m_j^(x)3`
    with linearly independent columns m_j; for other models than the single-topic one the
    caller brings them to this form first.

    Parameters
    ----------
    M1 : (n,) float64
        First moment.
    M2 : (n, n) float64
        Second moment, symmetric.
    M3 : (n, n, n) float64
        Third moment, symmetric.
    k : int
        Number of latent states.
    rotation : {"joint", "feature"}
        As in `fit`. With "joint" a column is the mean of what the slices say, which errs in all n
        directions, and of its projection on the k leading eigenvectors of M2, which errs where
        these do: measured on 300 to 1,000 documents, the mean of both errs less than either.

    Returns
    -------
    Recovered
        Columns of `raw` are the m_j; `topics` are for columns that are distributions.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues.
    InvalidInput
        Shapes that do not fit.

    Examples
    --------
    >>> M, w = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), np.array([0.6, 0.4])
    >>> moments = M @ w, (M * w) @ M.T, np.einsum("ij,kj,lj,j->ikl", M, M, M, w)
    >>> np.allclose(svtd(*moments, k=2).topics, M)
    True
    """
    n = M1.size
    if M1.shape != (n,) or M2.shape != (n, n) or M3.shape != (n, n, n):
        raise InvalidInput(
            f"moments of shapes {M1.shape}, {M2.shape}, {M3.shape}; they must be (n,), (n, n), "
            "(n, n, n)"
        )
    require_topics(k, 0.0)
    values, vectors = np.linalg.eigh((M2 + M2.T) / 2)
    order = np.argsort(-values)[:k]
    positive = int((values > values.max() * n * np.finfo(float).eps).sum())
    if positive < k:
        raise NotIdentifiable(
            f"{k} latent states asked for but M2 has {positive} positive eigenvalues; "
            f"ask for at most {positive}"
        )
    U = vectors[:, order]
    W = U / np.sqrt(values[order])
    slices = W.T @ (M3.reshape(n * n, n) @ W).reshape(n, n, k)
    O = RotationEvidence.of_slices(pack(slices), U, rotation).rotation()
    rows = np.einsum("aj,iab,bj->ij", O, slices, O, optimize=True)
    if rotation == "joint":
        rows = (rows + U @ (U.T @ rows)) / 2
    return recover(rows, (O.T @ (W.T @ M1)) ** 2)


def recover(rows: NDArray[np.float64], shares: NDArray[np.float64]) -> Recovered:
    """Topics and weights in canonical order: sign, nearest distribution.

    Whitened, topic j is `o_j sqrt((a0 + 1) / omega_j)`, so `u = W' M1` gives the weights at once:
    `omega_j = (o_j . u)^2 / (a0 + 1)`. Non-negative least squares on `M1 = M omega` errs as much
    (measured) but gives the weight 0 to small topics, which inference then never uses.

    Parameters
    ----------
    rows : (n, k) float64
        Columns are the topics, up to sign.
    shares : (k,) float64
        `(o_j . u)^2`: the weights up to a factor.

    Raises
    ------
    NotIdentifiable
        A column has no positive entry, so it is no distribution.
    """
    sums = rows.sum(axis=0)
    raw = rows * np.where(sums < 0, -1.0, 1.0)
    positive = (raw > 0).any(axis=0)
    if not positive.all():
        raise NotIdentifiable(
            f"{int((~positive).sum())} of {positive.size} topics have no positive entry; "
            "ask for fewer topics or add documents"
        )
    topics = nearest_distributions(raw)
    weights = shares / shares.sum()
    # equal weights differ by rounding: the topic of the earlier top word goes first
    order = np.lexsort((topics.argmax(axis=0), -weights.round(9)))
    return Recovered(
        np.ascontiguousarray(topics[:, order]), weights[order], np.ascontiguousarray(raw[:, order])
    )

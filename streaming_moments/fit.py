"""The fit: topics from statistics in three sweeps over their rows, wherever these lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.evidence import Directions, Evidence, evidence_bytes
from streaming_moments.fit_rows import InMemory, Rows
from streaming_moments.forms import Form, Mixture, form_of
from streaming_moments.lengths import Lengths
from streaming_moments.methods import decomposition_called
from streaming_moments.row_lengths import RowLengths, quotients
from streaming_moments.rows import interleaved
from streaming_moments.slices import rotated_diagonals, whitened_slices
from streaming_moments.svtd import Rotation, recover, require_rotation
from streaming_moments.tensor import unwhitened_rows, whitened_tensor
from streaming_moments.topic_model import TopicModel
from streaming_moments.weighted import Statistics
from streaming_moments.whitening import CoreMoments, Whitening, core_rows, whiten

TopicRows = tuple[NDArray[np.float64], NDArray[Any]]


def fit(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    rotation: Rotation = "joint",
) -> TopicModel:
    """Topics from the statistics alone, by singular value based tensor decomposition.

    Parameters
    ----------
    statistics, n_topics, alpha0
        As in `fit_by`, whose errors are raised.
    rotation : {"joint", "feature"}
        Joint diagonalisation of k sums of slices, or the paper's Remark 7.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit(statistics, n_topics=2).weights.round(2)
    array([0.5, 0.5])
    """
    require_rotation(rotation)
    return fit_by(statistics, n_topics, alpha0, rotation)


def fit_by(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    method: str = "joint",
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
        Its `method` is that of the decomposition.

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
    rows = InMemory((statistics,))
    return fit_rows(rows, n_topics, form_of(alpha0), method, seed)


def fit_rows(
    rows: Rows, n_topics: int, form: Form = Mixture(), method: str = "joint", seed: int = 0
) -> TopicModel:
    """Topics from all rows, whoever runs the steps: the same bits from the same blocks.

    Parameters
    ----------
    rows : Rows
        Of some statistics.
    n_topics : int
        k, from 1 to the columns of the basis.
    form : Form
        Of the model.
    method, seed
        As in `fit_by`, whose errors are raised.
    """
    whitening, directions, parts = sweep(rows, n_topics, form, method, seed)
    return finish(parts, directions, whitening, rows.lengths, rows.basis, method)


def sweep(
    rows: Rows, n_topics: int, form: Form, method: str, seed: int
) -> tuple[Whitening, Directions, list[TopicRows]]:
    """What the three sweeps of a fit give: the last the `topic_rows` of each block."""
    decomposition_called(method, seed)
    cores = rows.each("reading row blocks", core_rows)
    whitened = rows.once(
        "whitening", whiten_rows, cores, rows.lengths.whole, rows.basis, n_topics, form
    )
    del cores
    nbytes = evidence_bytes(n_topics)
    evidence = rows.summed("whitened slices", slice_evidence, whitened, method, nbytes=nbytes)
    solved = rows.once("rotation", solve, evidence, whitened, seed)
    del evidence
    parts = rows.gathered("topic rows", topic_rows, whitened, solved)
    return rows.value(whitened), rows.value(solved), parts


def whiten_rows(
    parts: Sequence[NDArray[Any]], lengths: Lengths, basis: Basis, n_topics: int, form: Form
) -> Whitening:
    """Whitening from the core rows of all blocks."""
    return whiten(CoreMoments.joined(parts, lengths), basis, n_topics, form)


def slice_evidence(statistics: Statistics, whitening: Whitening, method: str) -> Evidence:
    """What the slices of a block say about the topics."""
    return decomposition_called(method).evidence(
        whitening.spectrum,
        partial(whitened_tensor, statistics, whitening),
        partial(whitened_slices, statistics, whitening),
    )


def solve(evidence: Evidence, whitening: Whitening, seed: int) -> Directions:
    """Directions of the topics from the evidence of all rows.

    Raises
    ------
    NotIdentifiable
        The method cannot tell the topics apart.
    """
    rng = np.random.default_rng(seed)
    return decomposition_called(evidence.method).directions(evidence, whitening.spectrum, rng)


def topic_rows(statistics: Statistics, whitening: Whitening, directions: Directions) -> TopicRows:
    """(r, k) rows of the topic matrix, each row alone, and (r,) word counts of a block."""
    if directions.values is None:
        rows = rotated_diagonals(statistics, whitening, directions.vectors)
    else:
        rows = unwhitened_rows(statistics, whitening) @ directions.vectors * directions.values
    return rows, statistics.word_counts


def finish(
    parts: Sequence[TopicRows],
    directions: Directions,
    whitening: Whitening,
    lengths: RowLengths[Lengths],
    basis: Basis,
    method: str,
) -> TopicModel:
    """The model from the topic rows of all blocks, in their order: a fit's last step.

    A word that came later has its share of the tokens since, and all shares add up to 1 again.
    """
    word_counts = interleaved([counts for _, counts in parts]).astype(np.float64)
    C1, _, _ = lengths.constants(np.arange(basis.n_words), whitening.form)
    M1 = quotients(word_counts, C1)
    if lengths.later:
        M1 = M1 / M1.sum()
    rows = interleaved([rows for rows, _ in parts])
    recovered = recover(rows, (directions.vectors.T @ whitening.first) ** 2)
    return TopicModel(
        topics=recovered.topics,
        weights=recovered.weights,
        alpha0=whitening.form.alpha0,
        raw_topics=recovered.raw,
        word_probabilities=M1,
        spectrum=whitening.spectrum.copy(),
        exact_spectrum=whitening.exact_spectrum.copy(),
        umass=np.full(whitening.n_topics, np.nan),
        npmi=np.full(whitening.n_topics, np.nan),
        method=method,
        documents=lengths.whole.n_documents,
        vocabulary=basis.vocabulary,
        basis=basis.fingerprint,
    )

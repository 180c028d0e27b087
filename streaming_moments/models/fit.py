"""The fit: topics from statistics in three sweeps over their rows, wherever these lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from streaming_moments.decompositions.forms import Form, Mixture, form_of
from streaming_moments.decompositions.svtd import Rotation, require_rotation
from streaming_moments.models.base import FitOptions
from streaming_moments.models.halves import HalfRows, predicting_rounds
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.weighted import Statistics


def fit(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    rotation: Rotation = "joint",
    refine: int | Literal["auto"] = ROUNDS,
) -> TopicModel:
    """Topics from the statistics alone, by singular value based tensor decomposition.

    Parameters
    ----------
    statistics, n_topics, alpha0
        As in `fit_by`, whose errors are raised.
    rotation : {"joint", "feature"}
        Joint diagonalisation of k sums of slices, or the paper's Remark 7.
    refine : int or "auto"
        As in `fit_by`.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit(statistics, n_topics=2).weights.round(2)
    array([0.5, 0.5])
    """
    require_rotation(rotation)
    return fit_by(statistics, n_topics, alpha0, rotation, refine=refine)


def fit_by(
    statistics: Statistics,
    n_topics: int,
    alpha0: float = 0.0,
    method: str = "joint",
    seed: int = 0,
    refine: int | Literal["auto"] = ROUNDS,
) -> TopicModel:
    """Topics from the statistics alone, by the decomposition of that name, then refined.

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
    refine : int or "auto"
        Rounds that make the topics likelier by the pair counts: about 10 for coherent topics, 40
        and more to predict; 0 leaves them as decomposed. "auto" takes those after which pairs held
        out are likelier by no more, where the statistics keep halves of the documents.

    Returns
    -------
    TopicModel
        Its `method` is that of the decomposition.

    Raises
    ------
    NotIdentifiable
        Fewer than k columns or positive eigenvalues, or the method cannot tell the topics apart.
    InvalidInput
        Statistics of a part of the rows, an argument out of range, or "auto" without halves.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[3, 3, 0, 0], [3, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> fit_by(statistics, n_topics=2, method="power").topics.round(2)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 0.5],
           [0. , 0.5]])
    """
    options = TopicOptions(topics=n_topics, alpha0=alpha0, method=method, seed=seed)
    rows = InMemory((statistics,))
    if refine == "auto":
        halves = HalfRows.of(rows)
        start = fit_rows(rows, n_topics, form_of(alpha0), method, seed)
        refine = predicting_rounds(halves, start.pair_topics(rows.basis.core))
    return TopicModel.fit(rows, replace(options, refine=refine))


def fit_rows(
    rows: Rows, n_topics: int, form: Form = Mixture(), method: str = "joint", seed: int = 0
) -> TopicModel:
    """Topics of any form, not refined, whoever runs the steps: the same bits from the same blocks.

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
    return TopicModel.of_form(rows, form, FitOptions(topics=n_topics, method=method, seed=seed))

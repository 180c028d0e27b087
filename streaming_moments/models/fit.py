"""Fit topics to statistics in three sweeps over their rows, in memory or on workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from streaming_moments.arguments import checked, require_fitting
from streaming_moments.decompositions.forms import Form, Mixture, form_of
from streaming_moments.decompositions.methods import OwnRotation
from streaming_moments.decompositions.svtd import Rotation, require_rotation
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import FitOptions
from streaming_moments.models.halves import (
    HalfRows,
    predicting_rounds,
    require_halves,
)
from streaming_moments.models.numbers.number_search import (
    NumberSearch,
    numbers_of_topics,
    require_search,
    searched_by_fits,
)
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.stored import outcome_of
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.printing.plural import of_number
from streaming_moments.progress import Report, reporter, unreported
from streaming_moments.statistics.counts.weighted import Statistics


@checked
def fit(
    statistics: Statistics,
    n_topics: int | Literal["auto", "predict"],
    alpha0: float | Literal["auto"] = "auto",
    rotation: Rotation = "joint",
    refine: int | Literal["auto"] = ROUNDS,
    alpha: Literal["given", "auto"] = "given",
    verbose: int | bool = 0,
) -> TopicModel:
    """Fit topics to statistics by singular value based tensor decomposition.

    Parameters
    ----------
    statistics, n_topics, alpha0
        As in `fit_by`, which raises the same errors.
    rotation : {"joint", "feature"}
        "joint" diagonalises jointly k sums of slices of the third moments; "feature" is Remark 7 of
        Ruffini et al. (2018).
    refine, alpha, verbose
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
    require_fitting(fit, alpha0=alpha0)
    report = reporter("fit", verbose)
    model = fit_reported(statistics, n_topics, alpha0, rotation, 0, refine, alpha, report)
    report(outcome_of(model))
    return model


@checked
def fit_by(
    statistics: Statistics,
    n_topics: int | Literal["auto", "predict"],
    alpha0: float | Literal["auto"] = "auto",
    method: str | OwnRotation = "joint",
    seed: int = 0,
    refine: int | Literal["auto"] = ROUNDS,
    alpha: Literal["given", "auto"] = "given",
    verbose: int | bool = 0,
) -> TopicModel:
    """Fit topics to statistics by a decomposition, then refine them.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
            Statistics of all words of the vocabulary.
    n_topics : int, "auto" or "predict"
        k, from 1 to the number of columns of the basis. "auto" chooses the smallest number after
        which one more topic gains little held-out log-likelihood: less than a quarter of the mean
        gain per topic so far. "predict" tries 1, 2, 3, 5, 7, 10, 15 and so on. It chooses the
        smallest number with the best held-out log-likelihood, often several times that of "auto".
        Both need statistics that are split into two halves of the documents, and try at most one
        topic for 10 documents.
    alpha0 : float or "auto"
        Sum of the Dirichlet parameters; 0 fits the single-topic model. "auto" tries values from
        0.05 on, and chooses the one whose topics have the best held-out log-likelihood of pairs.
        Without halves, "auto" means 0.1. `alpha0_search` of the model lists the values tried.
        `alpha_sum` of the model, for reading documents, is the sum with which its topics predict
        best.
    method : str or callable
        As in `decompose`; "joint" and "feature" are the methods of `streaming_moments.fit`. The
        other methods decompose the k x k x k tensor of the stored sketch, and find the
        probabilities of all words from the pair counts.
    seed : int
        As in `decompose`.
    refine : int or "auto"
        Rounds that raise the likelihood of the pair counts: about 10 for coherent topics, 40 and
        more for prediction; 0 leaves the topics as decomposed. "auto" stops when the held-out
        log-likelihood of pairs no longer improves; it needs the halves.
    alpha : {"given", "auto"}
        Which prior the model has for reading documents; the topics do not depend on it. "given"
        uses `alpha0`. "auto" uses the sum of alpha with the best held-out log-likelihood of pairs,
        and needs halves. It raises this sum if one half of a document then predicts the other half
        better, for documents of the counted lengths.
    verbose : int
        1 prints a line for each step, with its seconds; 0 prints none.

    Returns
    -------
    TopicModel
        The model; its `method` is that of the decomposition.

    Raises
    ------
    NotIdentifiable
        The basis has fewer than k columns, the second moments have fewer than k positive
        eigenvalues, or the method cannot separate the topics.
    InvalidInput
        The statistics cover only part of the rows, an argument is out of range, "auto" is used
        without halves, or alpha is "auto" for single topics.

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
    require_fitting(fit_by, alpha0=alpha0)
    report = reporter("fit_by", verbose)
    model = fit_reported(statistics, n_topics, alpha0, method, seed, refine, alpha, report)
    report(outcome_of(model))
    return model


def fit_reported(
    statistics: Statistics,
    n_topics: int | str,
    alpha0: float | Literal["auto"],
    method: str | OwnRotation,
    seed: int,
    refine: int | Literal["auto"],
    alpha: Literal["given", "auto"],
    report: Report,
) -> TopicModel:
    """Fit as `fit_by` does, and call `report` with the values that were tried and chosen."""
    if isinstance(statistics, Sequence) and any(isinstance(one, str) for one in statistics[:1]):
        raise InvalidInput(
            "statistics are texts, but a fit needs counts; count texts in a store by "
            "create_store(URL, texts, source=NAME), or use MomentTopics after a CountVectorizer"
        )
    if isinstance(n_topics, str):
        require_search(n_topics, "n_topics", number=True)
        search = search_topics(statistics, n_topics, alpha0, method, seed, refine, report)
        n_topics = search.found(n_topics)
    rows = InMemory((statistics,))
    options = TopicOptions(
        topics=n_topics,
        alpha0=alpha0,
        method=cast("Any", method),
        seed=seed,
        refine=ROUNDS if refine == "auto" else refine,
        alpha=alpha,
    )
    if refine == "auto":
        halves = HalfRows.of(rows)
        known = TopicModel.likeliest_alpha0(rows, options).alpha0 if alpha0 == "auto" else alpha0
        start = fit_rows(rows, n_topics, form_of(known), method, seed)
        rounds = predicting_rounds(halves, start.pair_topics(rows.basis.core))
        options = replace(options, refine=rounds)
        report(f"chose {of_number(rounds, 'round')} of refinement")
    return TopicModel.fit(rows, options)


def search_topics(
    statistics: Statistics,
    how: str,
    alpha0: float | Literal["auto"] = "auto",
    method: str | OwnRotation = "joint",
    seed: int = 0,
    refine: int | Literal["auto"] = ROUNDS,
    report: Report = unreported,
) -> NumberSearch:
    """Search for the number of topics as `fit_by` does if `n_topics` is `how`.

    `how` is "auto" or "predict". Other arguments and errors are those of `fit_by`. The search calls
    `report` after each number of topics that it tried.
    """
    require_search(how)
    rows = InMemory((statistics,))
    require_halves(rows)
    options = TopicOptions(
        topics=1,
        alpha0=alpha0,
        method=cast("Any", method),
        seed=seed,
        refine=ROUNDS if refine == "auto" else refine,
    )
    numbers = numbers_of_topics(rows.basis, statistics.length_histogram.n_documents)
    if alpha0 == "auto":
        # search alpha0 once, with a middle number of topics: the best alpha0 hardly depends on the
        # number of topics
        middle = replace(options, topics=numbers[len(numbers) // 2])
        options = replace(options, alpha0=TopicModel.likeliest_alpha0(rows, middle).alpha0)
    return searched_by_fits(TopicModel, rows, options, how, numbers, worse=0, report=report)


def fit_rows(
    rows: Rows,
    n_topics: int,
    form: Form = Mixture(),
    method: str | OwnRotation = "joint",
    seed: int = 0,
) -> TopicModel:
    """Fit topics without refinement; `form` says how moments depend on the topics of a document.

    The same row blocks give the same bits, whichever workers hold them. `n_topics` is from 1 to the
    number of columns of the basis. Method, seed and errors are as for `fit_by`.
    """
    return TopicModel.of_form(
        rows, form, FitOptions(topics=n_topics, method=cast("Any", method), seed=seed)
    )

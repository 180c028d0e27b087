"""MultiViewMixture: model of records in three views by one hidden state, or a mixture of states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns
from streaming_moments.decompositions.forms import form_of
from streaming_moments.decompositions.views import frame, side_columns
from streaming_moments.deprecation import renamed_fields
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.base import (
    Description,
    FitOptions,
    option,
    require_joint,
    takes_n_topics,
)
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.reading.inference import (
    inferred_proportions,
    log_posteriors,
    posteriors,
    said_by_words,
)
from streaming_moments.models.refinement import require_rounds
from streaming_moments.models.rows import Rows
from streaming_moments.models.starts import MOMENTS
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.three_view.columns import (
    ViewColumns,
    half_bars,
    half_rows,
    number_of_records,
    said_of_turned,
    view_columns,
)
from streaming_moments.models.three_view.mixture_em import (
    Mixture,
    likelier_mixture,
    mixture_of_triples,
)
from streaming_moments.models.three_view.surroundings import by_surroundings, sketch_metric
from streaming_moments.models.three_view.triple_model import TripleModel
from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.foundation import VIEWS, ViewsFoundation
from streaming_moments.statistics.views.records import LEFT, RIGHT, ViewBatch
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

_SMOOTHING = 1e-3
TRIPLES_START = "triples"
# a search on triples from random starts needs moments that identify at least this many states
_FEWEST = 2


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class ViewOptions(FitOptions):
    """Options of a fit to records in three views."""

    alpha0: float = option(
        "Sum of the Dirichlet parameters; 0: each record has one state.", 0.0, form_of
    )
    refine: int = option(
        "Rounds of refinement by the triples; not used with sketches or alpha0.", 50, require_rounds
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "three views")


@renamed_fields("0.3.0", "0.4.0", without="n_missing")
@dataclass(frozen=True, eq=False, repr=False)
class MultiViewMixture(TripleModel):
    """Hidden states with a distribution over the words of each view.

    The views of a record are independent given its state, or, if `alpha0` is above 0, given its
    Dirichlet mixture of states. States are ordered by decreasing weight.

    Parameters
    ----------
    rows, left, right : (n, k) float64
        Distributions of the words of the rows, left and right view in each state.
    weights : (k,) float64
        Shares of the triples, with sum 1.
    alpha0 : float
        Sum of the Dirichlet parameters of the states of a record; 0 if each record has one state.
    spectrum : (k,) float64
        Singular values of the pair counts of the left and right views.
    n_missing : int
        Number of records that lack a view and are skipped.
    turned : int
        Number of states whose estimates are mostly negative, because there is little evidence.
    columns : tuple of str
        Names of the views.
    refined : int
        Number of rounds that refined the model on the table of triples.
    triple_score : float, optional
        Mean log-likelihood of a triple after refinement, in nats.
    start : str
        "moments", or "triples" if moments identify fewer states. In that case, rounds on the table
        of triples began with random states, and other states may explain the records equally well.
    bars, word_bars : (k,) and (n, k) float64, optional
        Expected L1 error of each distribution of the rows view, and standard errors of its
        probabilities, if the statistics have halves of the records. The fits to the halves are
        refined like the fit to all records.
    held_out : HeldOut, optional
        Log-likelihood of the triples of each half of the records under a model of the other half,
        if requested.
    polishing : Polishing, optional
        How passes polished the model, if they did; weights are then shares of the records.
    documents, since, until, half_life
        As for any model.

    Examples
    --------
    >>> half = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = MultiViewMixture(half, half, half, np.array([0.6, 0.4]))
    >>> model.assign({"left": CountBatch.from_csr([[2, 0], [0, 1], [0, 0]])})
    array([0, 1, 0])
    """

    name: ClassVar[str] = "views"
    kind: ClassVar[str] = ViewsFoundation.kind
    Options: ClassVar[type[FitOptions]] = ViewOptions
    nulls: ClassVar[tuple[str, ...]] = (*StoredModel.nulls, "triple_score")

    rows: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    left: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    right: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    alpha0: float = 0.0
    _: KW_ONLY
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_missing: int = field(default=0, metadata=stored_as(name="without"))
    turned: int = 0
    columns: tuple[str, str, str] = field(default=VIEWS, metadata=stored_as(required=True))
    refined: int = 0
    triple_score: float | None = None
    bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(0,), together="bars")
    )
    word_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(1,), together="bars")
    )
    held_out: HeldOut | None = None
    start: str = MOMENTS

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the model to statistics.

        If moments identify two states or more, but fewer than requested, the fit begins with random
        states, and searches for those that make the table of triples most likely. This happens, for
        example, if a view has few words.

        Parameters
        ----------
        rows : Rows
            Rows of `ViewStatistics`.
        options : ViewOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            Moments identify fewer than two states. Or they identify fewer than requested, and a
            search is not possible, because the statistics have no table of triples, or `refine` is
            0. The message says how many they identify.
        """
        try:
            return super().fit(rows, options)
        except NotIdentifiable:
            if not _identifies_two(rows, options):
                raise
            found = mixture_of_triples(rows, options)
            if found is None:
                raise
        mixture, score, refined = found
        documents, n_missing = number_of_records(rows)
        model = cls(
            mixture.rows,
            mixture.left,
            mixture.right,
            mixture.weights,
            documents=documents,
            n_missing=n_missing,
            columns=rows.foundation.columns,
            refined=refined,
            triple_score=score,
            start=TRIPLES_START,
        )
        return model.reordered(np.argsort(-model.weights, kind="stable"))

    @classmethod
    def _fitted(cls, rows: Rows, options: Any, halves: bool) -> Self:
        foundation: ViewsFoundation = rows.foundation
        fitted, decomposed = _decomposed(rows, options)
        mixture, score, refined = likelier_mixture(rows, [decomposed], options)
        found = None
        if halves:
            found = half_bars(mixture.rows, lambda odd: _of_half(rows, options, odd, mixture))
        bars, word_bars = found or (None, None)
        model = cls(
            mixture.rows,
            mixture.left,
            mixture.right,
            mixture.weights,
            options.alpha0,
            spectrum=fitted.spectrum,
            documents=fitted.documents,
            n_missing=fitted.n_missing,
            turned=fitted.turned,
            columns=foundation.columns,
            refined=refined,
            triple_score=score,
            bars=bars,
            word_bars=word_bars,
        )
        # sort the states again, because `by_surroundings` and refinement change their weights
        return model.reordered(np.argsort(-model.weights, kind="stable"))

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Return the bytes that a fit needs: ten arrays (number of words, number of states)."""
        return 8 * 10 * int(foundation.rows * options.topics)

    @property
    def n_topics(self) -> int:
        """Number of states k."""
        return self.weights.size

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) distributions over the n words of each view, by name of the view."""
        return dict(zip(self.columns, (self.rows, self.left, self.right), strict=True))

    @property
    def triple_views(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64], float]:
        """Distributions of the views, weights and alpha0, which give probabilities of triples."""
        return (self.rows, self.left, self.right), self.weights, self.alpha0

    def transform(
        self,
        batch: ViewBatch,
        method: str = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
    ) -> NDArray[np.float64]:
        """Infer the (records, k) probabilities of the states of each record.

        If `alpha0` is above 0, a record mixes states, and the result is their proportions. A record
        that lacks a view is read by its other views.
        """
        views = dict(zip(VIEWS, batch.views, strict=True))
        if self.alpha0:
            found = self._stacked(views)
            return inferred_proportions(*found, self.weights, self.alpha0, method, seed, iterations)
        return self.posterior(views)

    def read(
        self, batch: ViewBatch, method: str = "fixed-point", seed: int | None = None
    ) -> Columns:
        """Return the number of known words, the state and the proportions of each record.

        See `transform` for the arguments.
        """
        return said_by_words(self.transform(batch, method, seed), batch.lengths)

    def posterior(self, views: dict[str, CountBatch]) -> NDArray[np.float64]:
        """Return the (records, k) probability of each state given one or more views.

        Parameters
        ----------
        views : dict
            Counts of the same records in one or more views, by the name of the view: "rows", "left"
            or "right".

        Raises
        ------
        InvalidInput
            No view is given, a name is unknown, or views have different numbers of records.
        ForeignStatistics
            A view has another number of words than in the model.
        """
        return posteriors(log_posteriors(*self._stacked(views), self.weights))

    def log_likelihoods(self, views: dict[str, CountBatch]) -> NDArray[np.float64]:
        """Return the (records,) log-probabilities of records that have one state each.

        See `posterior` for the argument.
        """
        logarithms = log_posteriors(*self._stacked(views), self.weights)
        return np.asarray(np.logaddexp.reduce(logarithms, axis=1), dtype=np.float64)

    def assign(self, views: dict[str, CountBatch]) -> NDArray[np.int64]:
        """Return the (records,) most likely state of each record given one or more views."""
        return np.asarray(self.posterior(views).argmax(axis=1), dtype=np.int64)

    def described(self) -> Description:
        """Describe the weights and error bars of the states."""
        columns = {"weight": self.weights}
        if self.bars is not None:
            columns["error bar"] = self.bars
        facts: dict[str, Any] = {
            "alpha0": self.alpha0,
            "without": self.n_missing,
            "turned": self.turned,
            "refined": self.refined,
            "triple_score": self.triple_score,
            "views": list(self.columns),
        }
        sentence = f"views {', '.join(self.columns)}"
        if self.start == TRIPLES_START:
            facts["start"] = self.start
            sentence += "; moments identify fewer states, so rounds on triples started at random"
        if self.refined:
            sentence += f"; refined in {of_number(self.refined, 'round')} by their triples"
        if self.held_out is not None:
            facts["held_out"] = asdict(self.held_out) | {"mean": self.held_out.mean}
            sentence += f"; held-out log-likelihood {self.held_out.mean:.4f} per triple"
        cautions = []
        if self.n_missing:
            lacking = agreeing(
                self.n_missing, "record lacks a view and was", "records lack a view and were"
            )
            cautions.append(f"{lacking} skipped")
        if self.turned and not self.refined:
            cautions.append(said_of_turned(self.turned))
        sentence = "; ".join([sentence, *cautions, *self.said_of_polishing(facts)])
        return Description(facts, columns, sentence, cautions=tuple(cautions))

    def _stacked(self, views: dict[str, CountBatch]) -> tuple[CountBatch, NDArray[np.float64]]:
        """Join the views of each record to one row of a batch, and their tables to one table."""
        if not views or not views.keys() <= set(VIEWS):
            raise InvalidInput(
                f"the views are {', '.join(sorted(views)) or 'missing'}; give at least one of "
                f"{', '.join(VIEWS)}, which stand for {', '.join(self.columns)}"
            )
        tables = [getattr(self, name) for name in views]
        for name, table in zip(views, tables, strict=True):
            if views[name].n_words != len(table):
                raise ForeignStatistics(
                    f"view {name} has {views[name].n_words} words, but the model has {len(table)}; "
                    "read rows of the store that the model was fitted to"
                )
        if len({view.documents for view in views.values()}) > 1:
            raise InvalidInput(
                "the views have different numbers of records; give each record in all views"
            )
        smoothed = [_smoothed(table) for table in tables]
        if len(views) == 1:
            return next(iter(views.values())), smoothed[0]
        import scipy.sparse as sp

        joined = sp.hstack([view.to_csr() for view in views.values()], format="csr")
        return CountBatch.from_csr(joined), np.vstack(smoothed)


def _smoothed(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give every word a small probability, so that no single word excludes a state."""
    return np.asarray((1 - _SMOOTHING) * table + _SMOOTHING / len(table))


def _decomposed(rows: Rows, options: Any) -> tuple[ViewColumns, Mixture]:
    """Fit the mixture by moments; raises the errors of `view_columns` and `_other_view`."""
    own, left, right = rows.foundation.bases
    fitted = view_columns(rows, (left, right), options.topics, options.alpha0)
    found = fitted.found
    sketched = frame(own.matrix).T @ (own.matrix.T @ found.topics[: own.core])
    others = [_other_view(rows, name, sketched, own, options.alpha0) for name in (LEFT, RIGHT)]
    metrics = [sketch_metric(rows, left, LEFT), sketch_metric(rows, right, RIGHT)]
    words, weights = by_surroundings(rows, TRIPLES, metrics, found.topics, found.weights)
    beside = [sketch_metric(rows, own)]
    read = [
        by_surroundings(rows, name, beside, columns, weights)[0]
        for name, columns in zip((LEFT, RIGHT), others, strict=True)
    ]
    return fitted, Mixture(words, read[0], read[1], weights)


def _identifies_two(rows: Rows, options: Any) -> bool:
    """Whether moments identify two states, but fewer than the options ask for."""
    if options.topics <= _FEWEST:
        return False
    try:
        _decomposed(rows, replace(options, topics=_FEWEST))
    except NotIdentifiable:
        return False
    return True


def _of_half(rows: Rows, options: Any, odd: bool, whole: Mixture) -> NDArray[np.float64]:
    """Fit one half of the records; return the (n, k) distributions of its rows view.

    The rounds on triples also try the fit to all records, `whole`, as a start.
    """
    half = half_rows(rows, odd)
    starts = [_decomposed(half, options)[1], whole]
    return likelier_mixture(half, starts, options, drawn=False)[0].rows


def _other_view(
    rows: Rows, name: str, sketched: NDArray[np.float64], own: Any, alpha0: float
) -> NDArray[np.float64]:
    """Fit the (n, k) distributions of the left or right view, given the sketched rows view."""
    totals = rows.value(rows.summed("totals", _totals, name, nbytes=8 * (1 + own.columns)))
    turned = frame(own.matrix)
    parts: Sequence[NDArray[np.float64]] = [
        rows.value(part)
        for part in rows.each("other views", _side_rows, name, totals, turned, sketched, alpha0)
    ]
    columns = interleaved(parts)
    sums = columns.sum(axis=0)
    if not (sums > 0).all():
        raise NotIdentifiable(
            f"{int((~(sums > 0)).sum())} of {sums.size} states have no words in {name}; ask for "
            "fewer states, or count more records"
        )
    return nearest_distributions(columns / sums)


def _totals(statistics: ViewStatistics, name: str) -> NDArray[np.int64]:
    return np.asarray(statistics.sums[name].sum(axis=0))


def _side_rows(
    statistics: ViewStatistics,
    name: str,
    totals: NDArray[np.int64],
    turned: NDArray[np.float64],
    sketched: NDArray[np.float64],
    alpha0: float,
) -> NDArray[np.float64]:
    turn = np.eye(1 + len(turned))
    turn[1:, 1:] = turned
    return side_columns(statistics.sums[name] @ turn, totals @ turn, sketched, alpha0)

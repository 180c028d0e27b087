"""MomentViews: mixture model of records with three views, as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.rows import InMemory
from streaming_moments.models.three_view.multi_view import MultiViewMixture, ViewOptions
from streaming_moments.sklearn.estimator import RandomSeed
from streaming_moments.sklearn.sparse_input import SparseInput, rows_of
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_by_place
from streaming_moments.statistics.views.foundation import VIEWS, ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.statistics.views.statistics import ViewStatistics

_PILOT = 20_000  # the sketches are chosen from at most this many records


class MomentViews(SparseInput):
    """Hidden states of records with three views, each a matrix of counts.

    `X` is a list of three matrices, (records, n) array_like or sparse, or one matrix if `sizes` is
    given. Entries are whole numbers of at least 0. Records that lack a view are skipped.
    `partial_fit` chooses the sketches from its first records only.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of states k. "auto" chooses the largest number whose states are all found in both
        halves of the records. "predict" chooses the smallest number whose held-out log-likelihood
        of triples is within the noise of the best. Moments identify at most as many states as a
        view has words. A larger number of states is fitted to the table of triples, from random
        starts.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is one state per record.
    sizes : sequence of int, optional
        Columns of each view, if X is one matrix of three blocks. Pipelines and searches of
        scikit-learn need one matrix. By default, X is a list of three matrices.
    sketch_columns : int, optional
        Columns of the sketch of each view; the default is that of `sketch_of`.
    refine : int
        Rounds of refinement by the table of triples. They need views without sketches, and an
        alpha0 of 0.
    polish : int or "auto"
        Number of passes of expectation maximisation over the records after the fit; alpha0 must be
        0. "auto" makes at most 20, and stops when all later passes together would change the states
        by less than a twentieth of their error bars. Only `fit` polishes, because `partial_fit`
        does not have all records.
    random_state : int, RandomState or None
        Seed of the random columns of the sketches, and of the random starts of the fit.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that records can be added later;
        after `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    components_ : list of (k, n) float64
        Distribution of the words of each view in each state.
    weights_ : (k,) float64
        Shares of the states.
    number_search_ : NumberSearch
        Held-out scores of the numbers of states that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : ViewStatistics
        Statistics of all records.
    model_ : MultiViewMixture
        The fitted model.

    Examples
    --------
    >>> from streaming_moments.synthetic.hidden import view_records
    >>> drawn = view_records(3000, sizes=(6, 5, 4), k=2, seed=1)
    >>> X = [view.to_csr() for view in drawn.batch.views]
    >>> states = MomentViews(n_components=2).fit(X).predict(X)
    >>> bool(max(np.mean(states == drawn.states), np.mean(states != drawn.states)) > 0.95)
    True
    """

    _seen = "records"
    # default for pickles of earlier versions, which lack this parameter
    polish: int | Literal["auto"] = 0

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        alpha0: float = 0.0,
        sizes: Sequence[int] | None = None,
        sketch_columns: int | None = None,
        refine: int = 50,
        polish: int | Literal["auto"] = 0,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.sizes = sizes
        self.sketch_columns = sketch_columns
        self.refine = refine
        self.polish = polish
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return (records, k) probabilities of states, given the views that are not None."""
        check_is_fitted(self, "model_")
        return self.model_.posterior(self._views(X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most likely state of each record, given the views that are not None."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)

    def fit_predict(self, X: Any, y: object = None) -> NDArray[np.int64]:
        """Fit the model to these records and return the most likely state of each, (records,)."""
        return self.fit(X).predict(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log-probability of each record in nats, assuming one state for each record."""
        check_is_fitted(self, "model_")
        return self.model_.log_likelihoods(self._views(X))

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-probability of a record; higher is better."""
        return float(self.score_samples(X).mean())

    def _begin(self, records: ViewBatch) -> None:
        words = [
            Vocabulary(tuple(f"{name} {word}" for word in range(one.n_words)), core_of(one.n_words))
            for name, one in zip(VIEWS, records.views, strict=True)
        ]
        pilot = [one.to_csr()[:_PILOT] for one in records.views]
        bases = [self._sketch(pilot, place, own) for place, own in enumerate(words)]
        self._foundation = ViewsFoundation(
            (bases[0], bases[1], bases[2]), (words[0], words[1], words[2])
        )

    def _records(self, X: Any, first: bool = False) -> ViewBatch:
        """Return X as a batch of records; refuse X if it lacks one of the three views."""
        known = self._views(X)
        if len(known) != len(VIEWS):
            raise InvalidInput(
                f"X has {len(known)} views, but a mixture is fitted to three; give all three"
            )
        return ViewBatch(*(known[name] for name in VIEWS))

    def _counted(self, records: ViewBatch, first: int) -> ViewStatistics:
        words = self._foundation.vocabularies
        named = []
        for name, one, own in zip(VIEWS, records.views, words, strict=True):
            if one.n_words != len(own.terms):
                raise ForeignStatistics(
                    f"view {name} has {one.n_words} words, but the first records have "
                    f"{len(own.terms)}; give the same columns"
                )
            named.append(replace(one, vocabulary=own.fingerprint))
        odd = odd_by_place(first, records.documents)
        return self._foundation.of_counts(ViewBatch(*named).halved(odd))

    def _fitted(self, statistics: ViewStatistics) -> Self:
        told: dict[str, Any] = {"alpha0": self.alpha0, "refine": self.refine}
        told["seed"] = self._seed
        k = self._number(statistics, MultiViewMixture, **told)
        options = ViewOptions(topics=k, **told)
        self.statistics_ = statistics
        return self._shown(MultiViewMixture.fit(InMemory((statistics,)), options))

    def _shown(self, model: MultiViewMixture) -> Self:
        self.model_ = model
        self.components_ = [np.ascontiguousarray(one.T) for one in model.tables.values()]
        self.weights_ = model.weights.copy()
        return self

    def _views(self, X: Any) -> dict[str, CountBatch]:
        """Return the word counts of each view that is not None."""
        views = X if self.sizes is None else _apart(X, self.sizes)
        if not isinstance(views, Sequence) or len(views) != len(VIEWS):
            listed = isinstance(views, Sequence)
            what = f"X has {len(views)} views" if listed else f"X is of type {type(views).__name__}"
            raise InvalidInput(
                f"{what}; give a list of three matrices of counts, None for a missing view, or one "
                "matrix and sizes"
            )
        given = {name: view for name, view in zip(VIEWS, views, strict=True) if view is not None}
        return {name: CountBatch.from_csr(view) for name, view in given.items()}

    def _sketch(self, pilot: Sequence[Any], place: int, words: Vocabulary) -> Any:
        import scipy.sparse as sp

        own = pilot[place]
        others = [own.T @ other for at, other in enumerate(pilot) if at != place]
        together = sp.hstack(others, format="csr")
        return sketch_of(together, words, self.sketch_columns, self._seed + place)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.sizes is not None
        tags.input_tags.positive_only = True
        return cast("Tags", tags)


def _apart(X: Any, sizes: Sequence[int]) -> list[Any]:
    """Cut one matrix into the matrices of the three views, which have `sizes` columns."""
    whole = rows_of(X)
    if len(sizes) != len(VIEWS) or min(sizes) < 1 or sum(sizes) != whole.shape[1]:
        raise InvalidInput(
            f"sizes are {list(sizes)}, but X has {whole.shape[1]} columns; give three sizes of at "
            "least 1 whose sum is the number of columns"
        )
    return [whole[:, end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]

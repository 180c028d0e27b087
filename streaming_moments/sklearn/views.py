"""MomentViews: a mixture behind records of three views as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from streaming_moments.arguments import require_fitting
from streaming_moments.errors import InvalidInput
from streaming_moments.models.rows import InMemory
from streaming_moments.models.views.multi_view import MultiViewMixture, ViewOptions
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.views.foundation import VIEWS, ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.statistics.views.sketches import core_of, sketch_of

_PILOT = 20_000  # records


class MomentViews(BaseEstimator):  # type: ignore[misc]
    """Hidden states behind records of three views, each a matrix of counts.

    Parameters
    ----------
    n_components : int
        Number of states k.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is one state a record.
    sketch_columns : int, optional
        Columns of the sketches; as in `sketch_of`.
    refine : int
        Rounds by the table of triples, of views that are kept whole, without alpha0.
    random_state : int
        Seed of their random columns, and of random starts.

    Attributes
    ----------
    components_ : list of (k, n) float64
        Words of each view in each state.
    weights_ : (k,) float64
        Shares of the states.
    statistics_ : ViewStatistics
        Of all records that were seen.
    model_ : MultiViewMixture
        As it was fitted.

    Examples
    --------
    >>> from streaming_moments.synthetic.hidden import view_records
    >>> drawn = view_records(3000, sizes=(6, 5, 4), k=2, seed=1)
    >>> X = [view.to_csr() for view in drawn.batch.views]
    >>> states = MomentViews(n_components=2).fit(X).predict(X)
    >>> bool(max(np.mean(states == drawn.states), np.mean(states != drawn.states)) > 0.95)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha0: float = 0.0,
        sketch_columns: int | None = None,
        refine: int = 50,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.sketch_columns = sketch_columns
        self.refine = refine
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: object = None) -> Self:
        """The mixture of some records.

        Parameters
        ----------
        X : three (records, n) array_like or sparse
            Whole numbers of at least 0; a record that lacks a view counts for nothing.
        y : object
            Not used.

        Raises
        ------
        InvalidInput
            Not three views, other counts, or a parameter out of range.
        NotIdentifiable
            Records that do not tell so many states apart.
        """
        require_fitting(MomentViews.__init__, **self.get_params())
        known = _counts(X)
        if len(known) != len(VIEWS):
            raise InvalidInput(f"{len(known)} views; a mixture is fitted on three")
        counts = [known[name] for name in VIEWS]
        words = [
            Vocabulary(tuple(f"{name} {word}" for word in range(one.n_words)), core_of(one.n_words))
            for name, one in zip(VIEWS, counts, strict=True)
        ]
        pilot = [one.to_csr()[:_PILOT] for one in counts]
        bases = [self._sketch(pilot, place, own) for place, own in enumerate(words)]
        foundation = ViewsFoundation((bases[0], bases[1], bases[2]), (words[0], words[1], words[2]))
        named = [
            replace(one, vocabulary=own.fingerprint) for one, own in zip(counts, words, strict=True)
        ]
        self.statistics_ = foundation.of_counts(ViewBatch(*named))
        options = ViewOptions(
            topics=self.n_components,
            alpha0=self.alpha0,
            refine=self.refine,
            seed=self.random_state,
        )
        self.model_ = MultiViewMixture.fit(InMemory((self.statistics_,)), options)
        self.components_ = [np.ascontiguousarray(one.T) for one in self.model_.tables.values()]
        self.weights_ = self.model_.weights.copy()
        return self

    def predict_proba(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """(records, k) probability of each state, given the views that are not None."""
        check_is_fitted(self)
        return self.model_.posterior(_counts(X))

    def predict(self, X: Sequence[Any]) -> NDArray[np.int64]:
        """(records,) the likeliest state, given the views that are not None."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), dtype=np.int64)

    def _sketch(self, pilot: Sequence[Any], place: int, words: Vocabulary) -> Any:
        import scipy.sparse as sp

        own = pilot[place]
        others = [own.T @ other for at, other in enumerate(pilot) if at != place]
        together = sp.hstack(others, format="csr")
        return sketch_of(together, words, self.sketch_columns, self.random_state + place)


def _counts(X: Sequence[Any]) -> dict[str, CountBatch]:
    """Counts of the views that are not None."""
    if not isinstance(X, Sequence) or len(X) != len(VIEWS):
        what = f"{len(X)} views" if isinstance(X, Sequence) else f"X is of type {type(X).__name__}"
        raise InvalidInput(
            f"{what}; give a list of three matrices of counts, None for a view that is not there"
        )
    given = {name: view for name, view in zip(VIEWS, X, strict=True) if view is not None}
    return {name: CountBatch.from_csr(view) for name, view in given.items()}

"""MomentBernoulliMixture: mixture of Bernoulli distributions of binary rows, as an estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture, BernoulliOptions
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn.estimator import MomentMixture, RandomSeed
from streaming_moments.sklearn.sparse_input import SparseInput, held_values, is_sparse
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_by_place
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.views.sketches import sketch_of

_PILOT = 20_000  # number of first rows from which the sketch of the features is chosen


class MomentBernoulliMixture(SparseInput, MomentMixture):
    """Mixture of Bernoulli distributions (latent classes), from exact additive statistics.

    `X` is (n, d) array_like or sparse: a value above `binarize` is a feature of its row. If the
    rows do not separate `n_components` components, `fit` without `polish` warns and fits fewer.
    `partial_fit` chooses the sketch of the features from its first rows, and uses it for all rows.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of components k. "auto" chooses the largest number whose components are all found in
        both halves of the rows. "predict" chooses the smallest number whose held-out log-likelihood
        of pairs of features is within the noise of the best.
    polish : int or "auto"
        Number of passes of expectation maximisation over the rows after the fit. "auto" makes at
        most 20, and stops when all later passes together would change the components by less than a
        twentieth of their error bars. Only `fit` polishes, because `partial_fit` does not have all
        rows. Passes start from the fit by moments. They start from components fitted to a pilot
        (a sample of up to 8,000 rows) instead if rows are more likely under these, or if moments
        identify fewer than k components.
    binarize : float, optional
        Threshold above which a value is a feature; None accepts only 0 and 1.
    sketch_columns : int, optional
        Columns of the sketch of triples of features. By default, one for each of up to 128
        features, and 22 for more features. A good choice is twice the components plus two.
    random_state : int, RandomState or None
        Seed of the random columns of the sketch, and of the random starts of the fit.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that rows can be added later; after
        `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    probabilities_ : (k, n_features_in_) float64
        Probability of each feature in each component.
    probability_bars_ : (k, n_features_in_) float64 or None
        Standard errors of `probabilities_` before `polish`, from the two halves of the rows.
    weights_ : (k,) float64
        Weights of the components, with sum 1; decreasing before `polish`.
    number_search_ : NumberSearch
        Held-out scores of the numbers of components that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : MomentStatistics
        Statistics of all rows.
    model_ : BernoulliMixture
        The fitted model.
    n_features_in_ : int
        Number of features d.

    Examples
    --------
    >>> from streaming_moments.synthetic.sets import feature_sets
    >>> drawn = feature_sets(3000, n_features=30, components=3, seed=1)
    >>> found = MomentBernoulliMixture(n_components="auto", polish=2).fit(drawn.batch.to_csr())
    >>> found.probabilities_.shape, found.weights_.sum().round(6)
    ((3, 30), np.float64(1.0))
    """

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        polish: int | Literal["auto"] = 0,
        binarize: float | None = 0.0,
        sketch_columns: int | None = None,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.polish = polish
        self.binarize = binarize
        self.sketch_columns = sketch_columns
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def _begin(self, records: CountBatch) -> None:
        n = records.n_words
        features = Vocabulary(tuple(map(str, range(n))), min(n, DEFAULT_CORE))
        rows = records.select(0, min(_PILOT, records.documents)).to_csr()
        together = sp.csr_array(rows.T @ rows)
        together.setdiag(0)
        basis = sketch_of(together, features, self.sketch_columns, self._seed)
        self._foundation = SetsFoundation(features, basis)

    def _counted(self, records: CountBatch, first: int) -> MomentStatistics:
        words, odd = self._foundation.features.fingerprint, odd_by_place(first, records.documents)
        own = replace(records, vocabulary=words, halves=odd)
        return self._foundation.of_sets(own)

    def _fitted(self, statistics: MomentStatistics) -> Self:
        k = self._number(statistics, BernoulliMixture, seed=self._seed)
        self.statistics_ = statistics
        return self._shown(self._of_most(statistics, k))

    def _of_most(self, statistics: MomentStatistics, asked: int) -> BernoulliMixture:
        """Fit the requested number of components, or as many as are separable.

        If moments identify fewer and `polish` is set, return a blank model of the requested number
        of components. The passes of `polish` then start from components fitted to a pilot.
        """
        for k in range(asked, 0, -1):
            try:
                options = BernoulliOptions(topics=k, seed=self._seed)
                model = BernoulliMixture.fit(InMemory((statistics,)), options)
            except NotIdentifiable as error:
                reason = error
                if self.polish:
                    return BernoulliMixture.blank(statistics, asked)
            else:
                if k < asked:
                    warnings.warn(f"{k} of {asked} components found: {reason}", stacklevel=5)
                return model
        raise reason

    def _shown(self, model: BernoulliMixture) -> Self:
        self.model_ = model
        self.probabilities_ = np.ascontiguousarray(model.probabilities.T)
        bars = model.probability_bars
        self.probability_bars_ = None if bars is None else np.ascontiguousarray(bars.T)
        self.weights_ = model.weights.copy()
        return self

    def _records(self, X: Any, first: bool = False) -> CountBatch:
        least = 2 if first else 1
        try:
            checked = self._matrix(X, first, ensure_min_samples=least, dtype="numeric")
        except (TypeError, ValueError) as error:
            if not _are_lists(X):
                raise
            raise InvalidInput(
                "X holds lists of features, but MomentBernoulliMixture needs rows of 0 and 1; give "
                "MultiLabelBinarizer().fit_transform(X), or count the lists in a store of sets"
            ) from error
        values = held_values(checked)
        threshold = self.binarize
        if threshold is None:
            if not np.isin(values, (0, 1)).all():
                raise InvalidInput(
                    "X has values other than 0 and 1; give binarize, the threshold above which a "
                    "value is a feature"
                )
            threshold = 0.0
        if is_sparse(checked) and threshold < 0:
            raise InvalidInput(
                f"binarize is {threshold}, and X is sparse: its zeros would be features; give at "
                "least 0"
            )
        return CountBatch.from_csr((checked > threshold).astype(np.int8))


def _are_lists(X: Any) -> bool:
    """Whether records are sets of features, not rows of numbers of one length."""
    if hasattr(X, "tolist"):
        X = X.tolist() if getattr(X, "ndim", 0) == 1 else ()
    held = [one for one in X if isinstance(one, (list, tuple, set, frozenset))]
    texts = any(isinstance(feature, str) for one in held for feature in one)
    return bool(held) and (texts or len({len(one) for one in held}) > 1)

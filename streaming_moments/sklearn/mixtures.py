"""MomentGaussianMixture: Gaussian mixture as an estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.mixtures.gaussian_mixture import (
    GaussianMixture,
    MixtureOptions,
    blank_mixture,
)
from streaming_moments.models.mixtures.second_start import best_start, pilot_of
from streaming_moments.models.rows import InMemory
from streaming_moments.models.stored import too_few_line
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.sklearn.estimator import MomentMixture, RandomSeed
from streaming_moments.sklearn.vectors import VectorEstimator
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import VectorStatistics


class MomentGaussianMixture(MomentMixture, VectorEstimator):
    """Gaussian mixture, from exact additive statistics of rows.

    `X` is (n, d) array_like of finite numbers. `fit` warns if estimated variances are near 0 or
    below, or if the two halves of the rows show different components. `partial_fit` chooses from
    its first rows only how to count: the grid to which numbers are rounded, and the sketch.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of components k. "auto" chooses the largest number whose components are all found in
        both halves of the rows. "predict" chooses the smallest number whose held-out log-likelihood
        of rows is within the noise of the best.
    covariance_type : {"spherical", "tied-spherical", "diag", "tied-diag"}
        Whether a component has one variance ("spherical") or a variance for each coordinate
        ("diag"). "tied" variances are equal in all components.
    polish : int or "auto"
        Number of passes of expectation maximisation over the rows after the fit. "auto" makes at
        most 20, and stops when all later passes together would change the means by less than a
        twentieth of their error bars. Only `fit` polishes, because `partial_fit` does not have all
        rows. Passes start from the fit by moments. They start from K-means on a pilot of 4,000 rows
        instead if this makes other rows more likely, or if moments identify fewer than k
        components.
    sketch_columns : int, optional
        Columns of the sketch of the rows. By default, one for each of up to 64 columns of X. For
        more columns, one and a half times the number of components plus two.
    random_state : int, RandomState or None
        Seed by which rows of the pilot and random columns of the sketch are drawn.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that rows can be added later; after
        `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    weights_ : (k,) float64
        Weights of the components, with sum 1; decreasing before `polish`.
    means_ : (k, n_features_in_) float64
        Means of the components.
    covariances_ : (k,) or (k, n_features_in_) float64
        Variance of each component, or of each of its coordinates.
    number_search_ : NumberSearch
        Held-out scores of the numbers of components that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : VectorStatistics
        Statistics of all rows.
    model_ : GaussianMixture
        The fitted model.
    n_features_in_ : int
        Number d of coordinates of a row.

    Examples
    --------
    >>> from streaming_moments.synthetic.mixtures import mixture_rows
    >>> drawn = mixture_rows(3000, 5, 3, separation=8, seed=1)
    >>> found = MomentGaussianMixture(n_components=3).fit(drawn.rows)
    >>> found.means_.shape, found.weights_.round(1)
    ((3, 5), array([0.3, 0.3, 0.3]))
    """

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        covariance_type: str = "spherical",
        polish: int | Literal["auto"] = 0,
        sketch_columns: int | None = None,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.polish = polish
        self.sketch_columns = sketch_columns
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def _begin(self, records: NDArray[Any]) -> None:
        self._foundation = self._foundation_of(records, squares=self.covariance_type == "diag")
        if self.polish:
            self._pilot = pilot_of(records, self._seed)

    def _read_by_passes(self, records: NDArray[Any]) -> VectorBatch:
        return VectorBatch(records)

    def _started(self, model: GaussianMixture, batch: VectorBatch) -> GaussianMixture:
        return model  # `_best` has already chosen the model from which passes start

    def _fitted(self, statistics: VectorStatistics) -> Self:
        k = self._number(statistics, GaussianMixture, covariance=self.covariance_type)
        options = MixtureOptions(topics=k, covariance=self.covariance_type)
        model = self._best(statistics, options)
        if model.negative and not too_few_line(model):
            which = agreeing(model.negative, "variance", "variances")
            was = "was" if model.negative == 1 else "were"
            warnings.warn(
                f"{which} of {of_number(model.n_topics, 'component')} {was} estimated near 0 or "
                "below and set to a thousandth of the mean; if the columns do vary, ask for fewer "
                "components, tie their variances, or add rows",
                stacklevel=4,
            )
        if model.n_unsteady and not self.polish and not too_few_line(model):
            warnings.warn(model.unsteady_sentence, stacklevel=4)
        self.statistics_ = statistics
        return self._shown(model)

    def _best(self, statistics: VectorStatistics, options: MixtureOptions) -> GaussianMixture:
        """Return the fit by moments, or K-means components of a pilot if these predict better."""
        pilot, model = self.__dict__.pop("_pilot", None), None
        enough = pilot is not None and len(pilot) >= options.topics
        try:
            model = GaussianMixture.fit(InMemory((statistics,)), options)
        except NotIdentifiable as error:
            if not enough:
                raise NotIdentifiable(
                    f"{error}; or set polish and call fit, which then starts from a pilot of "
                    "the rows"
                ) from error
        if model is not None and not enough:
            return model
        blank = blank_mixture(statistics, options)
        return best_start(model, pilot, self._foundation.grid, blank)

    def _shown(self, model: GaussianMixture) -> Self:
        self.model_ = model
        self.weights_, self.means_ = model.weights.copy(), model.means.copy()
        alike = model.variances.shape[1] == 1
        self.covariances_ = model.variances[:, 0].copy() if alike else model.variances.copy()
        return self

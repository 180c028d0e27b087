"""MomentFactors: independent factors behind rows of numbers as an estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.factors.independent_factors import FactorOptions, IndependentFactors
from streaming_moments.models.rows import InMemory
from streaming_moments.models.vectors import BY_SPECTRUM
from streaming_moments.sklearn.estimator import MomentTransformer
from streaming_moments.sklearn.vectors import VectorEstimator
from streaming_moments.statistics.vectors.statistics import VectorStatistics

_REACH = 4.0  # median norms: tails are what factors are told apart by


class MomentFactors(MomentTransformer, VectorEstimator):
    """Independent factors of `x = mean + A h + noise`, by their third or fourth cumulants.

    `X` is (n, d) array_like of finite numbers. `fit` warns where noise has as large a cumulant as
    some factors. After `partial_fit`, grid and sketch are those of the first rows.

    Parameters
    ----------
    n_components : int or "auto"
        Number of factors k, or as many directions as the spectrum tells from noise.
    order : {"third", "fourth"}
        Cumulants that tell them apart: of skewed factors, or of kurtotic ones.
    noise : {"spherical", "diag", "full"}
        Normal noise of one variance, of one by coordinate, or of a full covariance.
    sketch_columns : int, optional
        Columns of the sketch of the rows; by default as of `MomentGaussianMixture`.
    random_state : int
        Seed of the pilot and the random columns.
    keep_statistics : bool
        Whether a pickle of what `fit` gave holds `statistics_`, so that more rows can be added
        to it; after `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    mixing_ : (n_features_in_, k) float64
        Column of each factor, which has variance 1.
    components_ : (k, n_features_in_) float64
        What finds the factors of a centred row.
    mean_ : (n_features_in_,) float64
        Of the rows.
    skewness_, kurtosis_ : (k,) float64
        Of the factors; kurtosis NaN without fourth moments.
    statistics_ : VectorStatistics
        Of all rows.
    model_ : IndependentFactors
        The model.
    n_features_in_ : int
        Numbers d of a row.

    Examples
    --------
    >>> from streaming_moments.synthetic.mixtures import amari_distance, factor_rows
    >>> drawn = factor_rows(5000, 6, 3, noise=0.1, seed=1)
    >>> found = MomentFactors(n_components=3).fit(drawn.rows)
    >>> amari_distance(drawn.mixing, found.components_.T) < 0.03
    True
    """

    _finds = ("auto",)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        order: str = "third",
        noise: str = "spherical",
        sketch_columns: int | None = None,
        random_state: int = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.order = order
        self.noise = noise
        self.sketch_columns = sketch_columns
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(n, k) factors of rows, of variance 1 and noise besides."""
        records = self._read(X)
        return self.model_.values(records)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """(n, d) rows of (n, k) factors, without noise.

        Raises
        ------
        ForeignStatistics
            Another number of factors.
        """
        check_is_fitted(self, "model_")
        values = check_array(X, dtype=np.float64)
        if values.shape[1] != self.mixing_.shape[1]:
            raise ForeignStatistics(
                f"{values.shape[1]} factors a row, the model has {self.mixing_.shape[1]}"
            )
        return self.model_.rows_of(values)

    def _begin(self, records: NDArray[Any]) -> None:
        fourth = self.order == "fourth" or self.noise == "full"
        self._foundation = self._foundation_of(records, fourth=fourth, reach=_REACH)

    def _fitted(self, statistics: VectorStatistics) -> Self:
        k = BY_SPECTRUM if isinstance(self.n_components, str) else self.n_components
        options = FactorOptions(topics=k, order=self.order, noise=self.noise, weak="keep")
        model = IndependentFactors.fit(InMemory((statistics,)), options)
        if model.weak:
            warnings.warn(
                f"{model.weak} of {model.n_topics} factors have a cumulant of {self.order} order "
                "that noise has too, and may be any; ask for fewer, for another order, or add rows",
                stacklevel=4,
            )
        self.statistics_ = statistics
        self.model_ = model
        self.mixing_ = model.mixing.copy()
        self.components_ = np.ascontiguousarray(model.unmixing.T)
        self.mean_ = model.mean.copy()
        self.skewness_, self.kurtosis_ = model.skewness.copy(), model.kurtosis.copy()
        return self

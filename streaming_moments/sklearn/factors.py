"""MomentFactors: independent factors of numeric rows, as an estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.factors.independent_factors import FactorOptions, IndependentFactors
from streaming_moments.models.factors.order import AUTO
from streaming_moments.models.rows import InMemory
from streaming_moments.models.vectors import BY_SPECTRUM
from streaming_moments.sklearn.estimator import MomentTransformer, RandomSeed
from streaming_moments.sklearn.vectors import VectorEstimator
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import VectorStatistics

# Rows are clipped to this multiple of their median norm. It is large, because factors are separated
# by the tails of their distributions.
_REACH = 4.0
# Fourth moments are counted if the sketch has at most this many columns. With more columns, they
# take too much time.
_MOST_FOURTH = 40


class MomentFactors(MomentTransformer, VectorEstimator):
    """Independent factors of `x = mean + A h + noise`, by their third or fourth cumulants.

    `X` is (n, d) array_like of finite numbers. `fit` warns if cumulants of some factors do not
    exceed noise. `partial_fit` chooses from its first rows only how to count: the grid to which
    numbers are rounded, and the sketch.

    Parameters
    ----------
    n_components : int or "auto"
        Number of factors k; "auto" chooses the number of directions in which rows vary beyond
        noise.
    order : {"auto", "third", "fourth", "both"}
        Cumulants that separate the factors: third for skewed factors, fourth for kurtotic factors,
        both for any kind. "auto" uses the cumulants with which the two halves of the rows agree
        best. If the sketch has more than 40 columns, "auto" uses only third cumulants, as fourth
        ones would be slow.
    noise : {"spherical", "diag", "full"}
        Covariance of the normal noise: one variance, one per coordinate, or a full matrix. With as
        many factors as X has columns, "spherical" and "diag" assume no noise.
    polish : int or "auto"
        Number of passes of maximum likelihood over the rows after the fit. "auto" stops when a pass
        changes the columns of `mixing_` by less than a twentieth of their error bars. Only `fit`
        polishes, because `partial_fit` does not have all rows.
    sketch_columns : int, optional
        Columns of the sketch of the rows; the default is that of `MomentGaussianMixture`.
    random_state : int, RandomState or None
        Seed by which rows of the pilot and random columns of the sketch are drawn.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that rows can be added later; after
        `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    mixing_ : (n_features_in_, k) float64
        Matrix A of the formula. The factors have variance 1.
    components_ : (k, n_features_in_) float64
        Unmixing matrix: its product with a centred row is the factors of the row.
    mean_ : (n_features_in_,) float64
        Mean of the rows.
    skewness_, kurtosis_ : (k,) float64
        Cumulants of the factors; kurtosis is NaN if fourth moments were not counted.
    statistics_ : VectorStatistics
        Statistics of all rows.
    model_ : IndependentFactors
        The fitted model.
    n_features_in_ : int
        Number d of coordinates of a row.

    Examples
    --------
    >>> from streaming_moments.synthetic.mixtures import amari_distance, factor_rows
    >>> drawn = factor_rows(5000, 6, 3, noise=0.1, seed=1)
    >>> found = MomentFactors(n_components=3).fit(drawn.rows)
    >>> amari_distance(drawn.mixing, found.components_.T) < 0.03
    True
    """

    _finds = ("auto",)
    # default for pickles of earlier versions, which lack this parameter
    polish: int | Literal["auto"] = 0

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        order: str = "auto",
        noise: str = "spherical",
        polish: int | Literal["auto"] = 0,
        sketch_columns: int | None = None,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.order = order
        self.noise = noise
        self.polish = polish
        self.sketch_columns = sketch_columns
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the (n, k) factors of rows; each factor has variance 1 plus that of the noise."""
        records = self._read(X)
        return self.model_.values(records)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return (n, d) rows `mean + A h`, without noise, for (n, k) factors h.

        Raises
        ------
        ForeignStatistics
            The number of factors differs from that of the model.
        """
        check_is_fitted(self, "model_")
        values = check_array(X, dtype=np.float64)
        if values.shape[1] != self.mixing_.shape[1]:
            raise ForeignStatistics(
                f"rows have {values.shape[1]} factors, but the model has {self.mixing_.shape[1]}; "
                "give rows with as many factors as the model"
            )
        return self.model_.rows_of(values)

    def _begin(self, records: NDArray[Any]) -> None:
        self._foundation = self._foundation_of(
            records, fourth=self._needs_fourth(records.shape[1]), reach=_REACH
        )

    def _needs_fourth(self, dimension: int) -> bool:
        if self.order != AUTO or self.noise == "full":
            return self.order != "third" or self.noise == "full"
        return min(self._columns(dimension) or dimension, dimension) <= _MOST_FOURTH

    def _read_by_passes(self, records: NDArray[Any]) -> VectorBatch:
        return VectorBatch(records)

    def _fitted(self, statistics: VectorStatistics) -> Self:
        k = BY_SPECTRUM if isinstance(self.n_components, str) else self.n_components
        options = FactorOptions(topics=k, order=self.order, noise=self.noise, weak="keep")
        model = IndependentFactors.fit(InMemory((statistics,)), options)
        # do not warn with `polish`: its passes separate factors by any deviation from normality
        if model.weak and not self.polish:
            other = "" if model.order == "both" else ', set order to "both"'
            warnings.warn(
                f"{model.weak} of {model.n_topics} factors have cumulants within noise and are "
                f"unreliable (order {model.order}); ask for fewer factors{other}, add rows, or set "
                "polish",
                stacklevel=4,
            )
        self.statistics_ = statistics
        return self._shown(model)

    def _shown(self, model: IndependentFactors) -> Self:
        self.model_ = model
        self.mixing_ = model.mixing.copy()
        self.components_ = np.ascontiguousarray(model.unmixing.T)
        self.mean_ = model.mean.copy()
        self.skewness_, self.kurtosis_ = model.skewness.copy(), model.kurtosis.copy()
        return self

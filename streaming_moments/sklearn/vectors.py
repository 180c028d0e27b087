"""VectorEstimator: shared parts of the estimators of numeric rows."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from streaming_moments.sklearn.estimator import MomentEstimator, RandomSeed
from streaming_moments.statistics.halves import mostly_repeated, row_keys
from streaming_moments.statistics.vectors.foundation import LARGEST_OF_FOURTH, VectorsFoundation
from streaming_moments.statistics.vectors.pilot import WHOLE, foundation_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import VectorStatistics

_DTYPES = [np.float64, np.float32]
_PILOT = 20_000  # the grid of rounding and the sketch are chosen from at most this many rows
# columns of a sketch: this many for each component, and a few more
_A_COMPONENT = 1.5
_BESIDE = 2


class VectorEstimator(MomentEstimator):
    """Estimator of numeric rows, (n, d) array_like; float32 stays float32."""

    n_components: int | Literal["auto", "predict"]
    sketch_columns: int | None
    random_state: RandomSeed
    _foundation: VectorsFoundation

    def _foundation_of(
        self,
        X: NDArray[Any],
        squares: bool = False,
        fourth: bool = False,
        reach: float | None = None,
    ) -> VectorsFoundation:
        """Choose the grid of rounding, and the sketch for `n_components`, from a sample of rows."""
        columns, seed = self._columns(X.shape[1]), self._seed
        bits = np.ascontiguousarray(X, dtype=np.float32).view(np.int32)
        starts = np.arange(len(X) + 1, dtype=np.int64) * X.shape[1]
        self._repeated = mostly_repeated(row_keys(starts, bits.ravel()))
        if columns is not None and self.sketch_columns is None and fourth:
            columns = min(columns, LARGEST_OF_FOURTH)
        pilot = X
        if len(X) > _PILOT:
            rng = np.random.default_rng(seed)
            pilot = X[np.sort(rng.choice(len(X), _PILOT, replace=False))]
        return foundation_of(pilot, columns, seed, squares, fourth, reach=reach)

    def _columns(self, dimension: int) -> int | None:
        """Return the number of columns of the sketch; None means the default of `foundation_of`."""
        known = self.sketch_columns is None and not isinstance(self.n_components, str)
        if known and dimension > WHOLE:
            return ceil(_A_COMPONENT * cast("int", self.n_components)) + _BESIDE
        return self.sketch_columns

    def _records(self, X: Any, first: bool = False) -> NDArray[Any]:
        least = 2 if first else 1
        rows: NDArray[Any] = validate_data(
            self,
            X,
            reset=first,
            dtype=_DTYPES,
            ensure_min_samples=least,
            ensure_min_features=least,
        )
        return rows

    def _counted(self, records: NDArray[Any], first: int) -> VectorStatistics:
        odd = self._halves(first, len(records))
        return self._foundation.of_vectors(VectorBatch.of(records, odd))

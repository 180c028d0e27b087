"""SparseInput: how estimators take sparse matrices beside arrays."""

from __future__ import annotations

from typing import Any, cast

import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from streaming_moments.sklearn.estimator import MomentEstimator


class SparseInput(MomentEstimator):
    """An estimator that takes a sparse matrix of any form, and works on its rows (CSR)."""

    def _matrix(self, X: Any, first: bool, **how: Any) -> Any:
        """X as an array or as CSR; the first records say how wide all are."""
        return validate_data(self, X, reset=first, accept_sparse="csr", **how)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return cast("Tags", tags)


def rows_of(X: Any) -> Any:
    """Of a matrix that is not as wide as the estimator: an array or CSR, of its own type."""
    return check_array(X, accept_sparse="csr", dtype=None)


def is_sparse(matrix: Any) -> bool:
    """Whether entries that a matrix does not hold are 0."""
    return bool(sp.issparse(matrix))


def held_values(matrix: Any) -> NDArray[Any]:
    """The values that a matrix holds: all of an array, those that are stored of a sparse one."""
    values: NDArray[Any] = matrix.data if is_sparse(matrix) else matrix
    return values

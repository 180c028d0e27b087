"""SparseInput: estimators that accept sparse matrices as well as arrays."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, validate_data

from streaming_moments.sklearn.estimator import MomentEstimator


class SparseInput(MomentEstimator):
    """Estimator that accepts any sparse matrix and converts it to rows (CSR)."""

    def _matrix(self, X: Any, first: bool, **how: Any) -> Any:
        """Return X as an array or as CSR; with `first`, X determines the number of columns."""
        return validate_data(self, X, reset=first, accept_sparse="csr", **how)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return cast("Tags", tags)


def rows_of(X: Any) -> Any:
    """Return a matrix as an array or as CSR, with its own dtype and number of columns."""
    return check_array(X, accept_sparse="csr", dtype=None)


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is sparse, so that entries that it does not store are 0."""
    return bool(sp.issparse(matrix))


def held_values(matrix: Any) -> NDArray[Any]:
    """Return all values of an array, or the stored values of a sparse matrix."""
    values: NDArray[Any] = matrix.data if is_sparse(matrix) else matrix
    return values


def holds_texts(X: Any) -> bool:
    """Whether records are texts or lists of texts instead of numbers."""
    one = X.to_numpy() if hasattr(X, "to_numpy") else X
    while isinstance(one, (list, tuple, np.ndarray)) and len(one):
        one = one[0]
    return isinstance(one, str)

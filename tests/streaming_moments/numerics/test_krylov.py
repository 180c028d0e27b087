"""Leading eigenpairs of large matrices, beside those of LAPACK."""

import numpy as np
import pytest

from streaming_moments.numerics.krylov import leading_eigenpairs


def symmetric(values, seed=0):
    """A matrix of these eigenvalues, and its eigenvectors."""
    n = len(values)
    vectors = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (vectors * values) @ vectors.T, vectors


def random_start(n, k):
    return np.linalg.qr(np.random.default_rng(1).standard_normal((n, k)))[0]


@pytest.mark.parametrize("k", [1, 4, 11])
def test_they_are_those_of_the_whole_matrix(k):
    values = np.concatenate([[90.0, 70, 50, 40, 20], np.linspace(5, -30, 395)])
    matrix, vectors = symmetric(values)
    found, spanned = leading_eigenpairs(lambda x: matrix @ x, random_start(400, k), 1e-12, 60)
    np.testing.assert_allclose(found, values[:k], rtol=1e-6)
    np.testing.assert_allclose(spanned.T @ spanned, np.eye(k), atol=1e-8)
    clear = min(k, 5)
    overlap = np.abs((spanned * vectors[:, :k]).sum(axis=0))[:clear]
    np.testing.assert_allclose(overlap, 1, atol=1e-4)


def test_only_what_is_in_question_need_settle():
    values = np.concatenate([[90.0, 70], np.linspace(5, 1, 298)])
    matrix, _ = symmetric(values)
    products = []

    def product(block):
        products.append(block.shape[1])
        return matrix @ block

    found, _ = leading_eigenpairs(product, random_start(300, 12), 1e-6, 20, settled=2)
    np.testing.assert_allclose(found[:2], values[:2], rtol=1e-6)
    few = len(products)
    leading_eigenpairs(product, random_start(300, 12), 1e-6, 20)
    assert few < len(products) - few


def test_a_matrix_of_low_rank_needs_no_more_blocks_than_it_has():
    matrix, _ = symmetric(np.array([3.0, 2, *np.zeros(98)]))
    found, _ = leading_eigenpairs(lambda x: matrix @ x, random_start(100, 4), 1e-9, 25)
    np.testing.assert_allclose(found, [3, 2, 0, 0], atol=1e-9)

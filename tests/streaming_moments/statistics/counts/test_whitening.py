"""Whitening: what the basis sees of the second moment, against the dense decomposition."""

import numpy as np
import pytest

from streaming_moments import Basis, LengthHistogram, MomentStatistics
from streaming_moments.decompositions.forms import form_of
from streaming_moments.statistics.counts.whitening import CoreMoments, whiten
from streaming_moments.synthetic.corpora import lda_corpus

CORE = 400


def dense_spectrum(core, alpha0, k):
    M1, C2 = core.word_counts / core.length_histogram.C1, core.length_histogram.C2
    A = core.pair_counts / C2 - alpha0 / (alpha0 + 1) * np.outer(M1, M1)
    return np.linalg.eigvalsh(A)[::-1][:k]


def core_moments(statistics):
    core = statistics.basis.core
    pairs, counts = statistics.pair_counts[:core], statistics.word_counts[:core]
    return CoreMoments(pairs, counts, statistics.length_histogram)


@pytest.fixture(scope="module")
def batch():
    return lda_corpus(3000, n_words=450, n_topics=6, mean_length=60, seed=4).batch


@pytest.mark.parametrize("alpha0", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("k", [1, 6, 12])
def test_the_leading_eigenvalues_are_those_of_the_whole_moment(batch, k, alpha0):
    basis = Basis.from_pilot(batch.select(0, 1000), max_topics=12, core=CORE)
    core = core_moments(MomentStatistics.of(batch, basis))
    found = whiten(core, basis, k, form_of(alpha0))
    np.testing.assert_allclose(found.exact_spectrum, dense_spectrum(core, alpha0, k), rtol=1e-6)
    assert found.captured <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_basis_that_sees_next_to_nothing_does_not_hide_the_spectrum(batch, seed):
    matrix = np.random.default_rng(seed).integers(-127, 128, (CORE, 9)).astype(np.int8)
    basis = Basis(matrix, batch.n_words, batch.vocabulary)
    core = core_moments(MomentStatistics.of(batch, basis))
    found = whiten(core, basis, 6, form_of(1.0))
    np.testing.assert_allclose(found.exact_spectrum, dense_spectrum(core, 1.0, 6), rtol=1e-6)
    assert found.captured < 0.5


def test_a_basis_of_eigenvectors_leaves_nothing_to_find():
    # words in three groups: the basis spans the eigenvectors exactly
    groups = np.repeat(np.eye(3, dtype=np.int64), 100, axis=0)
    basis = Basis(groups.astype(np.int8), 300)
    pairs = groups @ np.diag([9, 5, 2]) @ groups.T
    core = CoreMoments(pairs, np.full(300, 7), LengthHistogram.of([30] * 100))
    found = whiten(core, basis, 3)
    np.testing.assert_allclose(found.exact_spectrum, found.spectrum, rtol=1e-12)
    np.testing.assert_allclose(found.exact_spectrum, dense_spectrum(core, 0.0, 3), rtol=1e-12)

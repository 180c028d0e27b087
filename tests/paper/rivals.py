"""Every method on the same moments or statistics; tensorly's parafac beside our own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments import MomentStatistics
from streaming_moments.decompositions.evidence import GapEvidence
from streaming_moments.decompositions.forms import form_of
from streaming_moments.decompositions.methods import METHODS, decomposition_called
from streaming_moments.decompositions.moments import Moments
from streaming_moments.decompositions.svtd import Recovered, recover
from streaming_moments.decompositions.whitened import leading_states
from streaming_moments.models.fit import fit_by
from streaming_moments.numerics.packing import pack
from streaming_moments.statistics.counts.tensor import unwhitened_rows, whitened_tensor
from streaming_moments.statistics.counts.whitening import CoreMoments, whiten

PARAFAC = "parafac"
ALL_METHODS: tuple[str, ...] = (*METHODS, PARAFAC)
LABELS = {
    "joint": "SVTD, joint",
    "feature": "SVTD, feature",
    "power": "tensor power method",
    "svd": "SVD method",
    "eigen": "eigendecomposition",
    "als": "ALS (ours)",
    PARAFAC: "ALS (tensorly)",
}
COLOURS = {name: f"C{place}" for place, name in enumerate(ALL_METHODS)}
MARKERS = dict(zip(ALL_METHODS, "oDs^v<>", strict=True))
# Sweeps and tolerance of tensorly.
_SWEEPS, _TOLERANCE = 500, 1e-9


def by_moments(moments: Moments, k: int, method: str, seed: int) -> Recovered:
    """Topics and weights from given moments: a method decides on the directions, and no more.

    As `svtd` does with "joint", and there with it alone: each column is the mean of what the
    slices say along its direction, and of its projection on the range of M2.
    """
    n = moments.n_words
    spectrum, U = leading_states(moments.M2, k)
    W = U / np.sqrt(spectrum)
    slices = W.T @ (moments.M3.reshape(n * n, n) @ W).reshape(n, n, k)
    tensor = np.tensordot(W.T, slices, axes=1)
    if method == PARAFAC:
        _, vectors = _parafac(tensor, seed)
    else:
        chosen = decomposition_called(method)
        seen = GapEvidence.of(method, k, [pack(slices)]) if chosen.needs_slices else tensor
        vectors = chosen.directions(seen, spectrum, np.random.default_rng(seed)).vectors
    rows = np.einsum("aj,iab,bj->ij", vectors, slices, vectors, optimize=True)
    return recover((rows + U @ (U.T @ rows)) / 2, (vectors.T @ (W.T @ moments.M1)) ** 2)


def by_statistics(
    statistics: MomentStatistics, k: int, alpha0: float, method: str, seed: int
) -> NDArray[np.float64]:
    """(n, k) topics from statistics."""
    if method != PARAFAC:
        return fit_by(statistics, k, alpha0, method, seed, refine=0).topics
    whitening = whiten(core_moments(statistics), statistics.basis, k, form_of(alpha0))
    values, vectors = _parafac(whitened_tensor(statistics, whitening), seed)
    rows = unwhitened_rows(statistics, whitening) @ vectors * values
    return recover(rows, (vectors.T @ whitening.first) ** 2).topics


def core_moments(statistics: MomentStatistics) -> CoreMoments:
    core = statistics.basis.core
    return CoreMoments(
        statistics.pair_counts[:core], statistics.word_counts[:core], statistics.length_histogram
    )


def _parafac(
    tensor: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k,) values and (k, k) unit vectors, the mean of the three factors, signs matched."""
    from tensorly.decomposition import parafac

    values, (A, B, C) = parafac(
        tensor,
        rank=tensor.shape[0],
        n_iter_max=_SWEEPS,
        tol=_TOLERANCE,
        init="svd",
        normalize_factors=True,
        random_state=seed,
    )
    one, two = np.sign((A * C).sum(axis=0)), np.sign((B * C).sum(axis=0))
    vectors = one * two * (one * A + two * B + C)
    return values, vectors / np.linalg.norm(vectors, axis=0)

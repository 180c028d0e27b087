"""Numba kernels of the counts: serial, without the interpreter lock, cached on disk."""

from streaming_moments.lazy_imports import attach

attach(
    __name__,
    modules=("likelihood_kernels", "pair_kernels", "row_kernels", "triple_kernels", "wide_pairs"),
)

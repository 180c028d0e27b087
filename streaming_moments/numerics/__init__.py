"""Numerics on plain arrays: packed matrices, eigenpairs, joint diagonalisation, the simplex."""

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("jacobi",))

"""Numerics on plain arrays: packed matrices, eigenpairs, joint diagonalisation, the simplex."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("jacobi",))

if TYPE_CHECKING:
    from streaming_moments.numerics.jacobi import diagonalize_jointly as diagonalize_jointly
    from streaming_moments.numerics.krylov import leading_eigenpairs as leading_eigenpairs
    from streaming_moments.numerics.packing import pack as pack
    from streaming_moments.numerics.packing import packed_size as packed_size
    from streaming_moments.numerics.packing import unpack as unpack
    from streaming_moments.numerics.simplex import nearest_distributions as nearest_distributions

"""Numerics on plain arrays: packed matrices, eigenpairs, joint diagonalisation, the simplex."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.numerics.jacobi import diagonalize_jointly
    from streaming_moments.numerics.krylov import leading_eigenpairs
    from streaming_moments.numerics.packing import pack, packed_size, unpack
    from streaming_moments.numerics.simplex import nearest_distributions

__all__ = [
    "diagonalize_jointly",
    "leading_eigenpairs",
    "nearest_distributions",
    "pack",
    "packed_size",
    "unpack",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "jacobi": ("diagonalize_jointly",),
            "krylov": ("leading_eigenpairs",),
            "packing": ("pack", "packed_size", "unpack"),
            "simplex": ("nearest_distributions",),
        },
        modules=("jacobi",),
    )

"""Numba kernels of the counts: serial, without the interpreter lock, cached on disk."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {},
        modules=(
            "cell_kernels",
            "likelihood_kernels",
            "pair_kernels",
            "row_kernels",
            "triple_kernels",
        ),
    )

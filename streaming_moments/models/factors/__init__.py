"""Independent factors behind dense vectors, from third or fourth cumulants."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.models.factors.independent_factors import (
        FactorOptions,
        IndependentFactors,
    )

__all__ = ["FactorOptions", "IndependentFactors"]

if not TYPE_CHECKING:
    __getattr__ = late(__name__, {"independent_factors": ("FactorOptions", "IndependentFactors")})

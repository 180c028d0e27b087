"""Independent factors of dense vectors, estimated from third or fourth cumulants."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("interval_kernels",))

if TYPE_CHECKING:
    from streaming_moments.models.factors.independent_factors import FactorOptions as FactorOptions
    from streaming_moments.models.factors.independent_factors import (
        IndependentFactors as IndependentFactors,
    )

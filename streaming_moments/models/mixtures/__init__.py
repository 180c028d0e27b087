"""Gaussian mixtures of dense vectors, and passes over the vectors that refine such mixtures."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.models.mixtures.gaussian_mixture import (
        GaussianMixture as GaussianMixture,
    )
    from streaming_moments.models.mixtures.gaussian_mixture import MixtureOptions as MixtureOptions
    from streaming_moments.models.mixtures.passes import polished as polished

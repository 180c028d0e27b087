"""Mixtures of Gaussians behind dense vectors, and passes over these that make one likelier."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, MixtureOptions
    from streaming_moments.models.mixtures.passes import polished

__all__ = ["GaussianMixture", "MixtureOptions", "polished"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {"gaussian_mixture": ("GaussianMixture", "MixtureOptions"), "passes": ("polished",)},
    )

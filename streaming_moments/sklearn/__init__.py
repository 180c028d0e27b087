"""The method of moments as estimators of scikit-learn, in memory.

The only package that imports scikit-learn (`pip install streaming-moments[sklearn]`).
"""

from typing import TYPE_CHECKING

from streaming_moments.arguments import checked
from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.sklearn.communities import MomentCommunities
    from streaming_moments.sklearn.factors import MomentFactors
    from streaming_moments.sklearn.mixtures import MomentGaussianMixture
    from streaming_moments.sklearn.sequences import MomentHMM
    from streaming_moments.sklearn.tables import MomentLatentTree
    from streaming_moments.sklearn.topics import MomentTopics
    from streaming_moments.sklearn.views import MomentViews

__all__ = [
    "MomentCommunities",
    "MomentFactors",
    "MomentGaussianMixture",
    "MomentHMM",
    "MomentLatentTree",
    "MomentTopics",
    "MomentViews",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "communities": ("MomentCommunities",),
            "factors": ("MomentFactors",),
            "mixtures": ("MomentGaussianMixture",),
            "sequences": ("MomentHMM",),
            "tables": ("MomentLatentTree",),
            "topics": ("MomentTopics",),
            "views": ("MomentViews",),
        },
    )
    __getattr__ = checked(__getattr__)

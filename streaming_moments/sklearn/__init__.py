"""Estimators with the interface of scikit-learn, which fit models to data in memory by moments.

No other package imports scikit-learn, which `pip install streaming-moments[sklearn]` installs.
"""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.sklearn.bernoullis import (
        MomentBernoulliMixture as MomentBernoulliMixture,
    )
    from streaming_moments.sklearn.communities import MomentCommunities as MomentCommunities
    from streaming_moments.sklearn.factors import MomentFactors as MomentFactors
    from streaming_moments.sklearn.mixtures import MomentGaussianMixture as MomentGaussianMixture
    from streaming_moments.sklearn.sequences import MomentHMM as MomentHMM
    from streaming_moments.sklearn.tables import MomentLatentTree as MomentLatentTree
    from streaming_moments.sklearn.topics import MomentTopics as MomentTopics
    from streaming_moments.sklearn.views import MomentViews as MomentViews

"""Estimators of scikit-learn, in memory (`pip install streaming-moments[sklearn]`).

Nothing else imports scikit-learn.
"""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.sklearn.communities import MomentCommunities
    from streaming_moments.sklearn.tables import MomentLatentTree
    from streaming_moments.sklearn.topics import MomentTopics

__all__ = ["MomentCommunities", "MomentLatentTree", "MomentTopics"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "communities": ("MomentCommunities",),
            "tables": ("MomentLatentTree",),
            "topics": ("MomentTopics",),
        },
    )

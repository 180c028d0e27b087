"""The method of moments as estimators of scikit-learn, in memory.

The only package that imports scikit-learn (`pip install streaming-moments[sklearn]`).
"""

from streaming_moments.sklearn.sequences import MomentHMM
from streaming_moments.sklearn.topics import MomentTopics
from streaming_moments.sklearn.views import MomentViews

__all__ = ["MomentHMM", "MomentTopics", "MomentViews"]

"""Latent variable models by the method of moments, from mergeable integer statistics.

The mathematics: numpy, scipy and numba only. `streaming_moments.storage` keeps the statistics,
`streaming_moments.pipelines` gathers them with Dask.
"""

from streaming_moments.starting import guard

guard()

from streaming_moments.basis import Basis
from streaming_moments.counts import CountBatch
from streaming_moments.errors import StreamingMomentsError
from streaming_moments.fit import fit, fit_by
from streaming_moments.lengths import LengthHistogram
from streaming_moments.methods import METHODS, decompose
from streaming_moments.moments import Moments
from streaming_moments.rows import RowBlock
from streaming_moments.statistics import MomentStatistics, merge_blocks
from streaming_moments.svtd import svtd
from streaming_moments.topic_model import TopicModel
from streaming_moments.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Basis",
    "CountBatch",
    "LengthHistogram",
    "MomentStatistics",
    "Moments",
    "RowBlock",
    "StreamingMomentsError",
    "TopicModel",
    "Vocabulary",
    "decompose",
    "fit",
    "fit_by",
    "merge_blocks",
    "svtd",
]

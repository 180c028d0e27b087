"""Latent variable models by the method of moments, from mergeable integer statistics.

What is added up and fitted is here, with numpy, scipy and numba only; `streaming_moments.storage`
keeps the statistics, `streaming_moments.pipelines` gathers them with Dask.
"""

import os
from typing import TYPE_CHECKING

# In a checkout storage and pipelines lie beside this folder; where it is installed, within it.
if not os.path.isdir(os.path.join(__path__[0], "storage")):
    __path__.append(os.path.dirname(__path__[0]))

from streaming_moments.arguments import checked
from streaming_moments.faces import late
from streaming_moments.starting import guard

if TYPE_CHECKING:
    from streaming_moments.decompositions.methods import METHODS, decompose
    from streaming_moments.decompositions.moments import Moments
    from streaming_moments.decompositions.svtd import svtd
    from streaming_moments.errors import StreamingMomentsError
    from streaming_moments.models.fit import fit, fit_by
    from streaming_moments.models.passes.documents import polished
    from streaming_moments.models.topics import TopicModel
    from streaming_moments.pipelines.interface.opening import create_store, open_store
    from streaming_moments.pipelines.interface.readable import Topics
    from streaming_moments.pipelines.interface.store import Store
    from streaming_moments.statistics.counts.bags import from_gensim
    from streaming_moments.statistics.counts.basis import Basis
    from streaming_moments.statistics.counts.batch import CountBatch
    from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
    from streaming_moments.statistics.counts.statistics import MomentStatistics, merge_blocks
    from streaming_moments.statistics.counts.vocabulary import Vocabulary
    from streaming_moments.statistics.row_block import RowBlock

guard()

__version__ = "0.3.0"

__all__ = [
    "METHODS",
    "Basis",
    "CountBatch",
    "LengthHistogram",
    "MomentStatistics",
    "Moments",
    "RowBlock",
    "Store",
    "StreamingMomentsError",
    "TopicModel",
    "Topics",
    "Vocabulary",
    "create_store",
    "decompose",
    "fit",
    "fit_by",
    "from_gensim",
    "merge_blocks",
    "open_store",
    "polished",
    "svtd",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "errors": ("StreamingMomentsError",),
            "decompositions.methods": ("METHODS", "decompose"),
            "decompositions.moments": ("Moments",),
            "statistics.row_block": ("RowBlock",),
            "statistics.counts.bags": ("from_gensim",),
            "statistics.counts.basis": ("Basis",),
            "statistics.counts.batch": ("CountBatch",),
            "statistics.counts.lengths": ("LengthHistogram",),
            "statistics.counts.statistics": ("MomentStatistics", "merge_blocks"),
            "statistics.counts.vocabulary": ("Vocabulary",),
            "models.fit": ("fit", "fit_by"),
            "decompositions.svtd": ("svtd",),
            "models.passes.documents": ("polished",),
            "models.topics": ("TopicModel",),
            "pipelines.interface.readable": ("Topics",),
            "pipelines.interface.opening": ("create_store", "open_store"),
            "pipelines.interface.store": ("Store",),
        },
    )
    __getattr__ = checked(__getattr__)

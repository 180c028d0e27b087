"""Latent variable models by the method of moments, from mergeable integer statistics.

What is added up and fitted is here, with numpy, scipy and numba only; `streaming_moments.storage`
keeps the statistics, `streaming_moments.pipelines` gathers them with Dask.
"""

import os
from typing import TYPE_CHECKING

# In a checkout storage and pipelines lie beside this folder; where it is installed, within it.
if not os.path.isdir(os.path.join(__path__[0], "storage")):
    __path__.append(os.path.dirname(__path__[0]))

from streaming_moments.lazy_imports import attach
from streaming_moments.starting import guard

guard()

__version__ = "0.3.0"

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.decompositions.methods import METHODS as METHODS
    from streaming_moments.decompositions.methods import decompose as decompose
    from streaming_moments.decompositions.moments import Moments as Moments
    from streaming_moments.decompositions.svtd import svtd as svtd
    from streaming_moments.errors import StreamingMomentsError as StreamingMomentsError
    from streaming_moments.models.fit import fit as fit
    from streaming_moments.models.fit import fit_by as fit_by
    from streaming_moments.models.passes.documents import polished as polished
    from streaming_moments.models.topics import TopicModel as TopicModel
    from streaming_moments.pipelines.interface.opening import create_store as create_store
    from streaming_moments.pipelines.interface.opening import open_store as open_store
    from streaming_moments.pipelines.interface.readable import Topics as Topics
    from streaming_moments.pipelines.interface.store import Store as Store
    from streaming_moments.statistics.counts.bags import from_gensim as from_gensim
    from streaming_moments.statistics.counts.basis import Basis as Basis
    from streaming_moments.statistics.counts.batch import CountBatch as CountBatch
    from streaming_moments.statistics.counts.lengths.histogram import (
        LengthHistogram as LengthHistogram,
    )
    from streaming_moments.statistics.counts.statistics import MomentStatistics as MomentStatistics
    from streaming_moments.statistics.counts.statistics import merge_blocks as merge_blocks
    from streaming_moments.statistics.counts.vocabulary import Vocabulary as Vocabulary
    from streaming_moments.statistics.row_block import RowBlock as RowBlock

"""Latent variable models by the method of moments, from mergeable integer statistics.

This package sums and fits with numpy, scipy and numba only. `streaming_moments.storage` stores the
statistics; `streaming_moments.pipelines` gathers them with Dask.
"""

import os
from typing import TYPE_CHECKING

# The packages `storage` and `pipelines` are next to this folder in a checkout of the repository,
# and inside this folder in an installation.
if not os.path.isdir(os.path.join(__path__[0], "storage")):
    __path__.append(os.path.dirname(__path__[0]))

from streaming_moments.lazy_imports import attach
from streaming_moments.startup import guard

guard()

__version__ = "0.3.0"

attach(__name__, needs={"pipelines": "dask", "sklearn": "sklearn"})

if TYPE_CHECKING:
    from streaming_moments.decompositions.methods import METHODS as METHODS
    from streaming_moments.decompositions.methods import decompose as decompose
    from streaming_moments.decompositions.moments import Moments as Moments
    from streaming_moments.decompositions.svtd import svtd as svtd
    from streaming_moments.errors import StreamingMomentsError as StreamingMomentsError
    from streaming_moments.models.base import FitOptions as FitOptions
    from streaming_moments.models.bernoullis.bernoulli_mixture import (
        BernoulliMixture as BernoulliMixture,
    )
    from streaming_moments.models.bernoullis.bernoulli_mixture import (
        BernoulliOptions as BernoulliOptions,
    )
    from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel as HiddenMarkovModel
    from streaming_moments.models.chains.hidden_markov import MarkovOptions as MarkovOptions
    from streaming_moments.models.communities.blockmodel import Blockmodel as Blockmodel
    from streaming_moments.models.communities.blockmodel import (
        BlockmodelOptions as BlockmodelOptions,
    )
    from streaming_moments.models.communities.model import Communities as Communities
    from streaming_moments.models.communities.model import CommunitiesOptions as CommunitiesOptions
    from streaming_moments.models.factors.independent_factors import FactorOptions as FactorOptions
    from streaming_moments.models.factors.independent_factors import (
        IndependentFactors as IndependentFactors,
    )
    from streaming_moments.models.fit import fit as fit
    from streaming_moments.models.fit import fit_by as fit_by
    from streaming_moments.models.latent_trees.model import LatentTree as LatentTree
    from streaming_moments.models.latent_trees.model import LatentTreeOptions as LatentTreeOptions
    from streaming_moments.models.mixtures.gaussian_mixture import (
        GaussianMixture as GaussianMixture,
    )
    from streaming_moments.models.mixtures.gaussian_mixture import MixtureOptions as MixtureOptions
    from streaming_moments.models.passes.in_memory import polished as polished
    from streaming_moments.models.poissons.independent_intensities import (
        IndependentIntensities as IndependentIntensities,
    )
    from streaming_moments.models.poissons.independent_intensities import (
        IntensityOptions as IntensityOptions,
    )
    from streaming_moments.models.poissons.poisson_mixture import PoissonMixture as PoissonMixture
    from streaming_moments.models.registry import MODELS as MODELS
    from streaming_moments.models.rows import InMemory as InMemory
    from streaming_moments.models.three_view.multi_view import MultiViewMixture as MultiViewMixture
    from streaming_moments.models.three_view.multi_view import ViewOptions as ViewOptions
    from streaming_moments.models.topic_options import TopicOptions as TopicOptions
    from streaming_moments.models.topics import TopicModel as TopicModel
    from streaming_moments.pipelines.counting_options import (
        CountingOptions as CountingOptions,
    )
    from streaming_moments.pipelines.counting_options import PilotOptions as PilotOptions
    from streaming_moments.pipelines.interface.opening import create_store as create_store
    from streaming_moments.pipelines.interface.opening import open_store as open_store
    from streaming_moments.pipelines.interface.store import Store as Store
    from streaming_moments.pipelines.interface.topics_view import Topics as Topics
    from streaming_moments.pipelines.jobs.kinds.options import KindOptions as KindOptions
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

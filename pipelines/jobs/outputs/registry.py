"""Registry of the outputs that models write for shards, with an entry for each model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.registry import row_of
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.assign import assign
from streaming_moments.pipelines.jobs.outputs.complete import complete
from streaming_moments.pipelines.jobs.outputs.decode import DECODINGS, decode
from streaming_moments.pipelines.jobs.outputs.proportions import METHODS
from streaming_moments.pipelines.jobs.outputs.read_sets import read_sets
from streaming_moments.pipelines.jobs.outputs.read_vectors import read_components, read_factors
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputJob,
    OutputOptions,
    Written,
)
from streaming_moments.pipelines.jobs.outputs.transform import TransformResult, write_proportions
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

# options that are never reported as being without effect: every model uses them, or other code
# checks them
_OF_ALL = frozenset({"method", "name", "labels", "replace"})
_OF_DOCUMENTS = frozenset({"seed", "id_column", "passages", "top_documents", "foreign_below"})


@dataclass(frozen=True)
class Output:
    """How the models of one family write their output for shards.

    made : function that writes a file for each shard, on a cluster
    methods : names of the methods to choose from, the default first; empty if there is only one way
    takes : options that have an effect, besides the method
    """

    made: Callable[[OutputJob], Written | TransformResult]
    methods: tuple[str, ...] = ()
    takes: frozenset[str] = frozenset()

    def write(
        self,
        store: MomentStore,
        model: Any,
        shards: Sequence[Shard],
        output: str,
        run: Run,
        options: OutputOptions,
    ) -> Written | TransformResult:
        """Write the output of a model for shards; arguments and errors as in `transform`."""
        return self.made(OutputJob(store, model, shards, output, run, options))

    def idle(self, options: OutputOptions) -> list[str]:
        """Return the names of options that were given but have no effect on this output."""
        known = self.takes | _OF_ALL
        others = [one for one in fields(options) if one.name not in known]
        return [one.name for one in others if getattr(options, one.name) != one.default]


_DOCUMENTS = Output(write_proportions, METHODS, _OF_DOCUMENTS)
OUTPUTS: Mapping[str, Output] = MappingProxyType(
    {
        TopicModel.name: _DOCUMENTS,
        PoissonMixture.name: _DOCUMENTS,
        IndependentIntensities.name: _DOCUMENTS,
        Communities.name: _DOCUMENTS,
        MultiViewMixture.name: Output(assign, METHODS, frozenset({"seed", "views"})),
        HiddenMarkovModel.name: Output(decode, DECODINGS),
        LatentTree.name: Output(complete),
        GaussianMixture.name: Output(
            read_components, (), frozenset({"top_documents", "id_column"})
        ),
        BernoulliMixture.name: Output(read_sets, (), frozenset({"id_column"})),
        IndependentFactors.name: Output(read_factors, (), frozenset({"id_column"})),
    }
)


def output_of(model: str) -> Output:
    """Return how models with the name `model`, such as "hmm", write their output.

    Raises InvalidInput if the model has no output for shards; the message names the alternative.

    Examples
    --------
    >>> output_of("hmm").methods
    ('viterbi', 'posterior')
    """
    return row_of(OUTPUTS, model, "transform")

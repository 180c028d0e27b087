"""Hidden Markov chains: fits, decoding, and emissions, each in its own file."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("decoding",))

if TYPE_CHECKING:
    from streaming_moments.models.chains.discrete import DiscreteEmission as DiscreteEmission
    from streaming_moments.models.chains.emission import Emission as Emission
    from streaming_moments.models.chains.emission import Likelihoods as Likelihoods
    from streaming_moments.models.chains.gaussian import GaussianEmission as GaussianEmission
    from streaming_moments.models.chains.hidden_chain import HiddenChain as HiddenChain
    from streaming_moments.models.chains.hidden_markov import (
        HiddenMarkovModel as HiddenMarkovModel,
    )
    from streaming_moments.models.chains.row_windows import gaussian_chain as gaussian_chain
    from streaming_moments.models.chains.vector_sequences import (
        VectorSequences as VectorSequences,
    )

"""Models of three views: mixtures of records, and hidden Markov models of sequences."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("triple_kernels",))

if TYPE_CHECKING:
    from streaming_moments.models.views.hidden_markov import HiddenMarkovModel as HiddenMarkovModel
    from streaming_moments.models.views.multi_view import MultiViewMixture as MultiViewMixture

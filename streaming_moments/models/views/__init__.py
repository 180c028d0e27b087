"""Models of three views: mixtures of records, and hidden Markov models of sequences."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.models.views.hidden_markov import HiddenMarkovModel
    from streaming_moments.models.views.multi_view import MultiViewMixture

__all__ = ["HiddenMarkovModel", "MultiViewMixture"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {"hidden_markov": ("HiddenMarkovModel",), "multi_view": ("MultiViewMixture",)},
        modules=("decoding",),
    )

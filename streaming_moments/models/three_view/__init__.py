"""Hidden states of three views: mixtures of records, and code shared with windows of chains."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("triple_kernels",))

if TYPE_CHECKING:
    from streaming_moments.models.three_view.multi_view import MultiViewMixture as MultiViewMixture

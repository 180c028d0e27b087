"""Hidden states of records with three views.

Some of the code is shared with chains, whose windows of three symbols are such records.
"""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("triple_kernels",))

if TYPE_CHECKING:
    from streaming_moments.models.three_view.multi_view import MultiViewMixture as MultiViewMixture

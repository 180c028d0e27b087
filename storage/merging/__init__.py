"""Merging: stores that share a foundation, and how one store adds up several of them."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.merging.model_copies import PulledModel as PulledModel
    from streaming_moments.storage.merging.model_copies import pull_model as pull_model
    from streaming_moments.storage.merging.origin_shares import OriginShares as OriginShares
    from streaming_moments.storage.merging.origin_shares import (
        shares_by_origin as shares_by_origin,
    )
    from streaming_moments.storage.merging.pulling import Pull as Pull
    from streaming_moments.storage.merging.pulling import drop_origin as drop_origin
    from streaming_moments.storage.merging.pulling import pull as pull
    from streaming_moments.storage.merging.pulling import pull_together as pull_together
    from streaming_moments.storage.merging.shared_foundation import (
        SharedFoundation as SharedFoundation,
    )
    from streaming_moments.storage.merging.shared_foundation import create_like as create_like
    from streaming_moments.storage.merging.withdrawal import Withdrawal as Withdrawal
    from streaming_moments.storage.merging.withdrawal import withdraw as withdraw

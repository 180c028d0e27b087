"""Storage of corpora and statistics: shards, their days, and a versioned store at a URL."""

from typing import TYPE_CHECKING

from streaming_moments.arguments import checked
from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.counting.tokens import TokenPolicy
    from streaming_moments.storage.dates import DateRange, DateSource
    from streaming_moments.storage.formats.base import ReadLimits
    from streaming_moments.storage.listing import list_shards
    from streaming_moments.storage.operations.shares_over_time import shares_over_time
    from streaming_moments.storage.operations.windows import Window, windowed
    from streaming_moments.storage.shards import Shard, ShardFormat
    from streaming_moments.storage.store.store import MomentStore

__all__ = [
    "DateRange",
    "DateSource",
    "MomentStore",
    "ReadLimits",
    "Shard",
    "ShardFormat",
    "TokenPolicy",
    "Window",
    "list_shards",
    "shares_over_time",
    "windowed",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "shards": ("Shard", "ShardFormat"),
            "listing": ("list_shards",),
            "dates": ("DateRange", "DateSource"),
            "counting.tokens": ("TokenPolicy",),
            "formats.base": ("ReadLimits",),
            "store.store": ("MomentStore",),
            "operations.shares_over_time": ("shares_over_time",),
            "operations.windows": ("Window", "windowed"),
        },
    )
    __getattr__ = checked(__getattr__)

"""Read shards of a corpus and the days of their documents; keep statistics in a versioned store."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.counting.tokens import TokenPolicy as TokenPolicy
    from streaming_moments.storage.dates import DateRange as DateRange
    from streaming_moments.storage.dates import DateSource as DateSource
    from streaming_moments.storage.formats.base import ReadLimits as ReadLimits
    from streaming_moments.storage.listing import list_shards as list_shards
    from streaming_moments.storage.operations.shares_over_time import (
        shares_over_time as shares_over_time,
    )
    from streaming_moments.storage.operations.windows import Window as Window
    from streaming_moments.storage.operations.windows import windowed as windowed
    from streaming_moments.storage.shards import Shard as Shard
    from streaming_moments.storage.shards import ShardFormat as ShardFormat
    from streaming_moments.storage.store.store import MomentStore as MomentStore

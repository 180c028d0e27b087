"""Operations on stores: windows of days, compaction, forgetting, new words, history."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.operations.compaction import (
        commit_compaction as commit_compaction,
    )
    from streaming_moments.storage.operations.compaction import (
        compaction_groups as compaction_groups,
    )
    from streaming_moments.storage.operations.forgetting import commit_recount as commit_recount
    from streaming_moments.storage.operations.history import Difference as Difference
    from streaming_moments.storage.operations.history import difference as difference
    from streaming_moments.storage.operations.history import rollback as rollback
    from streaming_moments.storage.operations.history import tag as tag
    from streaming_moments.storage.operations.lineages import adopt as adopt
    from streaming_moments.storage.operations.lineages import stage as stage
    from streaming_moments.storage.operations.windows import Window as Window
    from streaming_moments.storage.operations.windows import WindowedStore as WindowedStore
    from streaming_moments.storage.operations.windows import windowed as windowed

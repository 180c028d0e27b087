"""Operations on a store: windows of days, compaction, forgetting, new words, history."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.operations.compaction import commit_compaction, compaction_groups
    from streaming_moments.storage.operations.forgetting import commit_recount
    from streaming_moments.storage.operations.history import Difference, difference, rollback, tag
    from streaming_moments.storage.operations.lineages import adopt, stage
    from streaming_moments.storage.operations.windows import Window, WindowedStore, windowed

__all__ = [
    "Difference",
    "Window",
    "WindowedStore",
    "adopt",
    "commit_compaction",
    "commit_recount",
    "compaction_groups",
    "difference",
    "rollback",
    "stage",
    "tag",
    "windowed",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "windows": ("Window", "WindowedStore", "windowed"),
            "compaction": ("commit_compaction", "compaction_groups"),
            "forgetting": ("commit_recount",),
            "history": ("Difference", "difference", "rollback", "tag"),
            "lineages": ("adopt", "stage"),
        },
    )

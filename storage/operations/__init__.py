"""Operations on stores: windows of days, compaction, forgetting, new words, history."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    compaction="commit_compaction compaction_groups",
    forgetting="commit_recount",
    history="Difference difference rollback tag",
    lineages="adopt stage",
    windows="Window WindowedStore windowed",
)

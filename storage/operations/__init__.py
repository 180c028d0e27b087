"""Operations on stores: windows of days, compaction, forgetting, new words, history."""

"""Listed shards: which are new, unchanged, changed, forgotten, or have moved."""

"""Compare listed shards with a store: find new, changed, forgotten and moved shards."""

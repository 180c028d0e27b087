"""Read the edges of graphs from shards, in batches."""

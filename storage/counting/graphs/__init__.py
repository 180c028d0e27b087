"""Graphs: edges of shards, as they are read and made into batches."""

"""Graphs: reads the edges of shards as batches."""

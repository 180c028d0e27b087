"""Pipelines: Dask jobs over shards and stores, and the command line."""

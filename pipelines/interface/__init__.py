"""Python interface to stores, for documents in files, lists, frames and Dask collections."""

"""Storage of corpora and statistics: Zarr, fsspec and Arrow."""

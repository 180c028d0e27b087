"""Tokenisers, which cut texts into words; each has a file here and a line in `registry.py`."""

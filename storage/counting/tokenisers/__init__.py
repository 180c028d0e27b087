"""Tokenisers, which cut texts into words; each has a file and a line in the registry."""

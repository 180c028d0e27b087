"""Symbols: sequences of shards, those with names, and samples of them."""

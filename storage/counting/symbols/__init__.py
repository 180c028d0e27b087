"""Symbols: sequences of shards, with or without names, and samples of them."""

"""Purges: what a store holds about some shards, how it is erased, and what is left of them."""

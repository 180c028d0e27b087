"""Purges: find all data of some shards in a store, erase it, and search for remaining data."""

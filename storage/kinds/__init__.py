"""Kinds: how the records of each kind of statistics are read from shards and sent to a service."""

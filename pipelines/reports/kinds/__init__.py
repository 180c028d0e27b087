"""Kinds: reports on a store of each kind, for people and programs."""

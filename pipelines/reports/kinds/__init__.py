"""Kinds: what people and programs read of a store of each kind."""

"""Kinds: how a store of each kind is created and rebased, and how numbers of states are compared."""

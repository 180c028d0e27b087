"""Kinds: how stores of each kind are created and rebased, and how a kind is recognised."""

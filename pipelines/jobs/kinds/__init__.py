"""Kinds: how a store of each kind is made and made anew, and numbers of states compared."""

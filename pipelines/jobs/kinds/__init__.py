"""Stores of other kinds than counts: how they are made, and numbers of states compared."""

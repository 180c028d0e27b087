"""Drift: how far the documents of a store have moved; a measure is a row of `measures.py`."""

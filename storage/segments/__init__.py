"""Immutable parts of versions: segments of statistics, vocabularies, bases and models."""

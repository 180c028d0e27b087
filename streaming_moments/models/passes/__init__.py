"""Passes over records that polish a model: over documents, and for each family of models."""

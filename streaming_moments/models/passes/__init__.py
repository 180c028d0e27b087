"""Passes over records, which polish models, and how they do so for each family of models."""

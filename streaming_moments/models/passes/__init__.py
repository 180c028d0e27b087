"""Passes over records, which polish models; how they do so for each family of models."""

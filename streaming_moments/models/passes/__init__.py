"""Passes over records that polish a model: of documents, and which models have any."""

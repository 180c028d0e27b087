"""Sequences, views, graphs, tables and embeddings beside their peers."""

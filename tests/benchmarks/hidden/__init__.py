"""Sequences, views, graphs and tables beside their peers."""

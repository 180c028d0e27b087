"""Connections of the service: where it listens, and how a connection ends."""

"""The doors from Python: a store with the caller's own client, and documents in any collection."""

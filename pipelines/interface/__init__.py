"""Python interface: a store with the client of the caller, and documents in any collection."""

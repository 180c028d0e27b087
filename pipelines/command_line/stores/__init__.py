"""Commands of the content of a store, a file each."""

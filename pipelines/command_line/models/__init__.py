"""Commands of the models of a store, a file each."""

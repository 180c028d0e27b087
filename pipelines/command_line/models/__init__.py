"""Commands for the models of a store, each in its own file."""

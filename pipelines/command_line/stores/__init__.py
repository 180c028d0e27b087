"""Commands for the content of a store, each in its own file."""

"""Log: the versions of a store, the content of each version, and the names of all files."""

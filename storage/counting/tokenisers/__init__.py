"""Tokenisers: what cuts texts into words, by name; a file and a line of the registry for each."""

"""Tables of categorical columns: words of a vocabulary as values of columns."""

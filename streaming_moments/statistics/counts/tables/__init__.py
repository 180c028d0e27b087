"""Tables of categorical columns, whose values are the words of a vocabulary."""

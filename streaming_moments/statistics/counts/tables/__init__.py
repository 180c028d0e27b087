"""Tables of categorical columns: which words of a vocabulary are the values of one column."""

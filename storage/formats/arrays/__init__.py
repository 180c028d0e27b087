"""Arrays and tables of numbers: the formats of vectors, one file each."""

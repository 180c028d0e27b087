"""Arrays and tables of numbers: the formats of vectors, each in its own module."""

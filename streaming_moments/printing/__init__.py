"""Printing: `repr` and HTML tables of models, plurals, numbers, and remedies of errors."""

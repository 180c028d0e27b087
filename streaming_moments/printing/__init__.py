"""Printing: models by `repr` and as HTML tables, plurals, remedies, numbers."""

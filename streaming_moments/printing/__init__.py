"""Printing of models: `repr` in a console, HTML table in a notebook."""

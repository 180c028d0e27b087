"""Columns of tables other than texts: days, names, categories and numbers of documents."""

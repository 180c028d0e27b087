"""Columns of tables beside the texts: the days of documents, and what they are called."""

"""Table columns that hold days, names, categories or numbers of documents, and no texts."""

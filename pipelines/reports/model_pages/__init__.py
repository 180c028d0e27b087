"""Parts, charts and tables of each family of models, for pages and reports."""

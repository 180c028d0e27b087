"""What pages and reports show of a model: of each family its parts, charts and tables."""

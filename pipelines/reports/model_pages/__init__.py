"""How pages and reports show each family of models: its parts, such as topics, and charts."""

"""How pages and reports show each family of models: its topics or other parts, charts and tables.
"""

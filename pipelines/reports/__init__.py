"""Reports on a store and a run: tables, a page, a plot, metrics."""

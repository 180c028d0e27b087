"""Models of Poisson counts, which are fitted to the same statistics as topic models."""

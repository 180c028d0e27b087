"""Models of Poisson counts, fitted to the statistics for topics: mixtures and intensities."""

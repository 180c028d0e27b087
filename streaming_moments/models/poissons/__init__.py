"""Models of Poisson counts, from the statistics of topics: mixtures, independent intensities."""

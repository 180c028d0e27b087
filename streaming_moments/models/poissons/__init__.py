"""Models of Poisson counts on statistics of topics: mixtures and independent intensities."""

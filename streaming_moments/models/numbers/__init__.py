"""Numbers: choice of the number of topics, states or components by held-out data."""

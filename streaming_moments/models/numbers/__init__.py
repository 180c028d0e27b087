"""Numbers: choose the number of topics, states or components by held-out data."""

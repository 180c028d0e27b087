"""Numbers: how many topics, states or components there are, by what is held out."""

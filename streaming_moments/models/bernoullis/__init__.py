"""Mixtures of Bernoullis behind sets of features, and passes over these that make one likelier."""

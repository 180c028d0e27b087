"""Bernoulli mixtures of sets of features, and passes over the sets that raise the likelihood."""

"""Bernoulli mixtures of sets of features, and passes over sets that raise the likelihood."""

"""Larger steps of the nightly run, such as the merge, the vocabulary and the choice of a model."""

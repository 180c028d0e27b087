"""Steps of a night that are more than one call: the merge, the vocabulary, the model."""

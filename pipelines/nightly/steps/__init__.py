"""Steps of a night that need a module each, such as the merge, the vocabulary and the model."""

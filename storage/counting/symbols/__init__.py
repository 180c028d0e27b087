"""Read sequences of symbols from shards, with or without names, and draw samples of them."""

"""Jobs that write files outside a store: outputs of models for shards, and lists of neighbours."""

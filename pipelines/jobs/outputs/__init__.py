"""Jobs that write files beside a store: what a model says of shards, or lists of neighbours."""

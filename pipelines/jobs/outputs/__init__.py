"""Jobs that write files outside a store: what models infer from shards, and neighbours of nodes."""

"""Count shards on workers, add up the sums and write segments, one group of shards at a time."""

"""Where jobs run: the cluster, its tasks and memory, and the rows of a store as tasks read them."""

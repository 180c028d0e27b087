"""The store: one version at a time, its changes, its verification and its garbage."""

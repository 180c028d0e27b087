"""Folders that `--init` of a command writes: what it needs to run as it is."""

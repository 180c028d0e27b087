"""Folders that `--init` of a command writes, with everything that the command needs."""

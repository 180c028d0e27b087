"""The command line: each file defines one command, or a few related commands."""

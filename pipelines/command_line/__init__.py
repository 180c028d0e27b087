"""The command line: each file reads the arguments of commands on one topic."""

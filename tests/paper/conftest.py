# The experiments are run by hand: pytest neither collects nor imports them.
collect_ignore_glob = ["*.py"]

"""Run as `python tests/benchmarks/over_time 0.1.0..main`."""

from history import main

main()

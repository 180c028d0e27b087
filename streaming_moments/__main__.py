"""`python -m streaming_moments`."""

from streaming_moments.pipelines.command_line.entry import main

main()

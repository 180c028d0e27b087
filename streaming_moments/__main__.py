"""`python -m streaming_moments`."""

from streaming_moments.pipelines.entry import main

main()

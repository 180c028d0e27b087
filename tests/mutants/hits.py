"""The lines that a test executes, recorded by instrumented sources in any process."""

import mmap
import os
from collections.abc import Callable

PLACE = "STREAMING_MOMENTS_HITS"
_BYTES = 8


def _recorder() -> Callable[[int, int], None]:
    """Append a hit once for each test; without a folder to record in, do nothing."""
    if PLACE not in os.environ:
        return lambda file, line: None
    place = os.environ[PLACE]
    # tests replace what they call of os
    write = os.write
    hits = os.open(f"{place}/hits", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(f"{place}/test", "rb") as file:
        current = mmap.mmap(file.fileno(), _BYTES, access=mmap.ACCESS_READ)
    seen = set()

    def hit(file: int, line: int) -> None:
        test = current[:]
        if (test, file, line) not in seen:
            seen.add((test, file, line))
            write(hits, b"%d %d %d\n" % (int.from_bytes(test, "little"), file, line))

    return hit


hit = _recorder()

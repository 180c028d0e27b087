"""The fresh process of a measurement: `python child.py JOB MARKER ANSWER`."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

from measure import Clock


def main(task: str, marker: str, answer: str) -> None:
    clock = Clock(Path(marker))
    figures = pickle.loads(Path(task).read_bytes()).run(clock)
    found = {
        "seconds": sum(clock.stages.values()),
        "stages": clock.stages,
        "peak_bytes": clock.peak_bytes,
        "child_peak_bytes": clock.child_peak_bytes,
        "cpu_seconds": clock.cpu_seconds,
        "figures": {name: float(value) for name, value in figures.items()},
    }
    written = Path(answer).with_suffix(".part")
    written.write_text(json.dumps(found))
    written.rename(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Files of the product that are so long that they may have two subjects: a warning, no failure."""

import sys
from pathlib import Path

from assembled import PLACES

LONG = 600
ROOT = Path(__file__).parent.parent


def long_files(root=ROOT):
    """Lines of each long file by its path."""
    paths = [path for folder in PLACES for path in (root / folder).rglob("*.py")]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(paths)}
    return {path: number for path, number in lines.items() if number > LONG}


if __name__ == "__main__":
    for path, number in long_files().items():
        place = path.relative_to(ROOT)
        sys.stderr.write(f"warning: {place} has {number} lines; has it one subject?\n")

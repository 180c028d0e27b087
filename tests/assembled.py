"""The package as one tree, as it is installed, for tools that read folders and run no code.

`python tests/assembled.py mypy` runs mypy in `build/assembled`, where storage and pipelines lie
within streaming_moments; `lint-imports` and others as well. A checkout needs no links for it.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = {
    "streaming_moments": "streaming_moments",
    "storage": "streaming_moments/storage",
    "pipelines": "streaming_moments/pipelines",
}


def assemble(place, root=ROOT):
    """Let a folder hold the package; what is there and the same is left alone, for caches."""
    wanted = {}
    for source, target in PLACES.items():
        for path in (root / source).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                wanted[place / target / path.relative_to(root / source)] = path
    wanted[place / "pyproject.toml"] = root / "pyproject.toml"
    for path in [*(place / "streaming_moments").rglob("*")]:
        if path.is_file() and path not in wanted and "__pycache__" not in path.parts:
            path.unlink()
    for path, source in wanted.items():
        if not (path.is_file() and filecmp.cmp(path, source)):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path)
    return place


def main(tool, *arguments):
    place = assemble(ROOT / "build" / "assembled")
    command = shutil.which(tool, path=str(Path(sys.executable).parent)) or tool
    environment = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run([command, *arguments], cwd=place, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

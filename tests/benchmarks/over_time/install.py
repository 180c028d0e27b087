"""Make a commit the one that the environment imports: `install.py CHECKOUT COMMIT ENVIRONMENT`.

Nothing is built. All commits share one environment, so their dependencies are of one version each;
each commit has a folder of its own, in which the kernels that it compiles stay with it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

# the extras that cases need
EXTRAS = ("serve", "sklearn")


def requirements(project: dict) -> list[str]:
    """Return what a commit asks for to run the cases; early ones have no extras."""
    optional = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(one for extra in EXTRAS for one in optional.get(extra, []))]


def placed(checkout: Path, folder: Path, project: dict) -> None:
    """Copy a checkout, with the metadata in which the package looks up its version."""
    whole = folder.with_suffix(".part")
    shutil.rmtree(whole, ignore_errors=True)
    shutil.copytree(checkout, whole, symlinks=True, ignore=shutil.ignore_patterns(".git", "tests"))
    name, version = project["name"], project["version"]
    metadata = whole / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    whole.rename(folder)


def main(checkout: str, commit: str, environment: str) -> None:
    project = tomllib.loads(Path(checkout, "pyproject.toml").read_text())["project"]
    folder = Path(environment, "commits", commit)
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *requirements(project)]
        subprocess.run(pip, check=True)
        folder.parent.mkdir(exist_ok=True)
        placed(Path(checkout), folder, project)
    Path(sysconfig.get_path("purelib"), "commit.pth").write_text(f"{folder}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

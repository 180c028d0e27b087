"""Prints what the change log says of a version, if a tag names the version of the package."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def notes(tag, changes):
    """Lines of the change log under the heading of a tag's version."""
    number = re.escape(tag.removeprefix("v"))
    found = re.search(rf"^## \[?{number}\]?.*\n((?:(?!^## ).*\n?)*)", changes, re.MULTILINE)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section {tag.removeprefix('v')}; write one")
    return found[1].strip()


def main(tag):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project["version"]
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, pyproject.toml has version {version}; make them one")
    urls = project["urls"].values()
    if any("/OWNER/" in url for url in urls):
        raise SystemExit("the URLs in pyproject.toml name OWNER; name who publishes it")
    print(notes(tag, (ROOT / "CHANGELOG.md").read_text()))


if __name__ == "__main__":
    main(*sys.argv[1:])

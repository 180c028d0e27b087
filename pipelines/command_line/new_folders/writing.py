"""Write new folders: with all files, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.backends import remedy_of

_Result = TypeVar("_Result")


def require_new(folder: Path) -> Path:
    """Return the folder; raise InvalidInput if it is a file, or a folder that is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists and is not an empty folder; give another name")
    return folder


def write_new_folder(folder: Path, write: Callable[[Path], _Result], last: str) -> _Result:
    """Let a function write files into a new folder, and return its result.

    If the files have to be moved into an existing folder one by one, `last` is moved last. Raises
    InvalidInput if the folder is not empty or cannot be written.
    """
    whole = require_new(folder).resolve()
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        # Replace an existing folder by the new one. If a shell may be in the folder, or its parent
        # is read-only, move the new files into the folder instead.
        closed = whole.is_dir() and not os.access(whole.parent, os.W_OK)
        inside = whole == Path.cwd() or closed
        with TemporaryDirectory(prefix=".new-", dir=whole if inside else whole.parent) as name:
            staged = Path(name, "new")
            staged.mkdir()
            result = write(staged)
            if not inside:
                staged.replace(whole)
            else:
                for path in sorted(staged.iterdir(), key=lambda one: one.name == last):
                    path.rename(whole / path.name)
    except OSError as error:
        remedy = remedy_of(error) or "give another folder"
        raise InvalidInput(f"{folder} cannot be written ({error.strerror}); {remedy}") from error
    return result


def files_of(folder: Path) -> str:
    """List the names in a folder for people, without hidden ones."""
    return ", ".join(sorted(path.name for path in folder.iterdir() if path.name[0] != "."))

"""Uncommitted files: segments and models that no commit names yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Uncommitted:
    """A segment or a model that is written but not yet in a commit.

    folder : its folder in the store
    sizes : bytes of each file, by its path in the folder, including the manifest
    begun : a time before the first file was written, by the clock of the storage
    """

    folder: str
    sizes: Mapping[str, int]
    begun: datetime

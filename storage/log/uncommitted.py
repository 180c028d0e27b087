"""What is written and no commit names yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Uncommitted:
    """A segment or a model that is written and that no commit names yet.

    Parameters
    ----------
    folder : str
        Where it is in the store.
    sizes : mapping
        Bytes of each file by its path in the folder, the manifest among them.
    begun : datetime
        When nothing of it was written, by the clock of the storage.
    """

    folder: str
    sizes: Mapping[str, int]
    begun: datetime

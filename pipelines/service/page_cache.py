"""Kept pages: what took a while to make for them, while it stays what it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

_MOST = 16


@dataclass(frozen=True)
class KeptPages:
    """What pages show, by what it is of; those asked for last.

    Examples
    --------
    >>> pages = KeptPages()
    >>> pages.kept(("/", 3), lambda: "made"), pages.kept(("/", 3), lambda: "made anew")
    ('made', 'made')
    """

    _pages: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What is shown by a key, made if it is not there; one is made at a time."""
        with self._making:
            found = self._pages.pop(key) if key in self._pages else make()
            self._pages[key] = found  # the last of all
            while len(self._pages) > _MOST:
                self._pages.pop(next(iter(self._pages)))
            return found

    def clear(self) -> None:
        """Forget all pages."""
        with self._making:
            self._pages.clear()

"""PageCache: cache of parts of pages that are slow to make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

_MOST = 16


@dataclass(frozen=True)
class PageCache:
    """Cache of contents of pages by key; the least recently used contents are dropped first.

    Examples
    --------
    >>> pages = PageCache()
    >>> pages.get_or_create(("/", 3), lambda: "made")
    'made'
    >>> pages.get_or_create(("/", 3), lambda: "made again")
    'made'
    """

    _pages: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def get_or_create(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the content of a key, or make it; only one content is made at a time."""
        with self._making:
            found = self._pages.pop(key) if key in self._pages else make()
            self._pages[key] = found  # put it last, because it is the most recently used one
            while len(self._pages) > _MOST:
                self._pages.pop(next(iter(self._pages)))
            return found

    def clear(self) -> None:
        """Forget all pages."""
        with self._making:
            self._pages.clear()

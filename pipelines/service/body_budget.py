"""Budget: bytes of bodies that may be held at once, by all calls."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Budget:
    """Bytes that may be held at once; for one thread only.

    Examples
    --------
    >>> budget = Budget(10)
    >>> budget.take(8), budget.take(8)
    (True, False)
    >>> budget.give(8)
    >>> budget.take(8)
    True
    """

    nbytes: int
    _held: int = field(default=0, repr=False)

    def take(self, nbytes: int) -> bool:
        """Hold more, if there is room."""
        if self._held + nbytes > self.nbytes:
            return False
        self._held += nbytes
        return True

    def give(self, nbytes: int) -> None:
        """Hold less."""
        self._held -= nbytes

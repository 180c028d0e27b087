"""Budget for the bytes of all request bodies in memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Budget:
    """Bytes that bodies may use at once; for one thread only.

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
        """Reserve more bytes, if there is room."""
        if self._held + nbytes > self.nbytes:
            return False
        self._held += nbytes
        return True

    def give(self, nbytes: int) -> None:
        """Release bytes."""
        self._held -= nbytes

"""Limits of the body of a request, of one document, and of all pending documents.

`http/bodies.py` checks a body while it arrives, and `http/admission.py` a call before it starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import model_validator
from pydantic.dataclasses import dataclass as checked_dataclass

from streaming_moments.pipelines.nightly.keys import STRICT, Positive, Size
from streaming_moments.pipelines.quantities import Count
from streaming_moments.storage.formats import DEFAULT_LIMITS

BODIES = 4  # at most this many bodies of the largest size are in memory at once
# The JSON of a request may have this many lists and objects for each of its documents. An empty
# list takes two bytes of JSON, but hundreds of bytes in memory.
NESTED = 20
HARMLESS = 200_000  # this many lists and objects are allowed even if a body has few documents


@checked_dataclass(frozen=True, config=STRICT)
class LimitsSection:
    """Limits on requests: largest accepted sizes, numbers and times.

    `body` and `document` are bytes; `body` also bounds the decompressed size. `days` bounds the age
    of the date of a document, because each day is counted separately. `inbox` and `inbox_age` bound
    the pending documents. `seconds` is how long a body may take to arrive, a client to read an
    answer, or the storage to write. `requests` bounds concurrent requests, and `connections` open
    connections. `drain` is how long open requests may take after the signal to end.
    """

    body: Size = 16 << 20
    document: Size = 1 << 20
    documents: Count = 10_000
    texts: Count = 1_000
    days: Count = 366
    inbox: Size = 1 << 30
    inbox_age: Positive = timedelta(minutes=15)
    seconds: Positive = timedelta(seconds=30)
    requests: Count = 64
    connections: Count = 1_000
    drain: Positive = timedelta(seconds=30)

    @model_validator(mode="after")
    def _fits_what_reads(self) -> LimitsSection:
        most = DEFAULT_LIMITS.document_bytes
        if self.document > most:
            raise ValueError(
                f"document is {self.document:,} bytes, but the counting process reads at most "
                f"{most:,}; give a lower limit"
            )
        return self


@dataclass
class Budget:
    """Number of bytes that the bodies of all requests together may take in memory.

    Only one thread may use it.

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


@dataclass
class Share:
    """The part of a budget that one user takes for bodies still arriving: at most `most` bytes.

    `bodies` is the number of these bodies.

    Examples
    --------
    >>> budget = Budget(10)
    >>> share = Share(budget, most=6)
    >>> share.take(5), share.take(5), budget.take(5)
    (True, False, True)
    """

    budget: Budget
    most: int
    bodies: int = 0
    held: int = 0

    def take(self, nbytes: int) -> bool:
        """Reserve more bytes, if there is room for this user."""
        if self.held + nbytes > self.most or not self.budget.take(nbytes):
            return False
        self.held += nbytes
        return True

    def give(self, nbytes: int) -> None:
        """Release bytes."""
        self.came(nbytes)
        self.budget.give(nbytes)

    def came(self, nbytes: int) -> None:
        """Release the bytes of a complete body from this share; the budget still holds them."""
        self.held -= nbytes

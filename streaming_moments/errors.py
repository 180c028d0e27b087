"""The error tree: every error of ours names the values and the remedy in one line."""

from __future__ import annotations

_SHOWN = 20


class StreamingMomentsError(Exception):
    """Base of all errors a caller can mend; the command line exits with 2, or 4 on `Unfinished`."""


class InvalidInput(StreamingMomentsError, ValueError):
    """An argument, a document or a count is not what the function takes."""


class ForeignStatistics(StreamingMomentsError):
    """Two values were gathered on different vocabularies, bases or rows."""


class BoundExceeded(StreamingMomentsError):
    """An integer, or the memory, would pass its stated bound."""


class SumExceeded(BoundExceeded):
    """A sum of statistics could pass the 2^62 that its integer holds."""


class NotIdentifiable(StreamingMomentsError):
    """The statistics do not hold the number of topics asked for."""


class ShardError(StreamingMomentsError):
    """A shard cannot be read; `url` names it and `reason` says why, with the remedy.

    Parameters
    ----------
    url : str
        URL of the shard.
    reason : str
        What is wrong and what to do, without the URL.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"{printable(self.url)}: {self.reason}"


class NoRoom(ShardError):
    """A shard can be read, but the sums of the store have no room for its documents."""


class KillsWorkers(ShardError):
    """A shard killed each worker that read it while nothing else ran there."""


class PiecesOverlap(InvalidInput):
    """Pieces of a sequence hold the same place of it; `shards` are those that bring them, if known.

    Parameters
    ----------
    reason : str
        Which pieces and what to do, without the shards.
    shards : tuple of str
        URLs.
    """

    def __init__(self, reason: str, shards: tuple[str, ...] = ()) -> None:
        super().__init__(reason, shards)
        self.reason = reason
        self.shards = shards

    def __str__(self) -> str:
        shown = ", ".join(printable(url) for url in self.shards[:_SHOWN])
        more = f" and {len(self.shards) - _SHOWN} more" if len(self.shards) > _SHOWN else ""
        return f"{self.reason}; they came with {shown}{more}" if shown else self.reason


class StoreError(StreamingMomentsError):
    """A store is absent, present where it must not be, damaged or of another format."""


class Unfinished(StreamingMomentsError):
    """Part of the work is committed and the rest is not done: the same call finishes it.

    The command line exits with 4 on it.
    """


def short(fingerprint: str) -> str:
    """The first 12 digits of a fingerprint, as messages show it."""
    return fingerprint[:12] or "(none)"


def printable(text: str) -> str:
    r"""A text as a terminal may show it: control characters, and what else has no shape, escaped.

    Examples
    --------
    >>> print(printable("\x1b[31mété\nERROR"))
    \x1b[31mété\nERROR
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )

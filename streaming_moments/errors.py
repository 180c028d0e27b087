"""Error classes: each message names the values and the remedy in one line."""

from __future__ import annotations

_SHOWN = 20


class StreamingMomentsError(Exception):
    """Base of all errors that a caller can fix; commands exit with 2, `Unfinished` with 4."""


class InvalidInput(StreamingMomentsError, ValueError):
    """An argument, a document or a count is invalid."""


class ForeignStatistics(StreamingMomentsError):
    """Two values were gathered on different vocabularies, bases or rows."""


class BoundExceeded(StreamingMomentsError):
    """An integer, or the memory, would exceed its stated bound."""


class SumExceeded(BoundExceeded):
    """A sum of statistics could exceed the 2^62 of its integer type."""


class NotIdentifiable(StreamingMomentsError):
    """The statistics do not identify the requested number of topics."""


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
    """A shard is readable, but the sums of the store have no room for its documents."""


class KillsWorkers(ShardError):
    """A shard killed every worker that read it while nothing else ran there."""


class PiecesOverlap(InvalidInput):
    """Pieces of a sequence overlap; `shards` holds these pieces, if known.

    Parameters
    ----------
    reason : str
        The pieces and the remedy, without the shards.
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
    """A store is missing, exists where it must not, is damaged, or has another format."""


class Unfinished(StreamingMomentsError):
    """Part of the work is committed; the same call finishes the rest.

    The command line exits with 4 on it.
    """


def short(fingerprint: str) -> str:
    """First 12 digits of a fingerprint, as in messages."""
    return fingerprint[:12] or "(none)"


def printable(text: str) -> str:
    r"""A text that is safe to print: control characters and characters without a glyph are escaped.

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

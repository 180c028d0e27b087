"""Error classes: each message names the wrong values and a remedy in one line."""

from __future__ import annotations

from streaming_moments.printing.remedies import Remedy, Spell, in_words, of_commands

_SHOWN = 20


class StreamingMomentsError(Exception):
    """Base of all errors that a caller can fix. Commands then exit with 2, or 4 for `Unfinished`.

    The arguments of the constructor are the problem and, often, a remedy: a `Remedy` or a format
    string for one. Both name options in a neutral form. The function or command that the user
    called has a `spell`, which writes these options in the syntax of Python, the command line or
    HTTP.
    """

    spell: Spell = staticmethod(of_commands)

    def said(self, spell: Spell) -> str:
        """Return the message with options spelt for Python, the command line or HTTP."""
        return in_words(spell, *self.args)

    def __str__(self) -> str:
        return self.said(self.spell)


class InvalidInput(StreamingMomentsError, ValueError):
    """An argument, a document or a count is invalid."""


class ForeignStatistics(StreamingMomentsError):
    """Two statistics cannot be combined: they have different vocabularies, bases or rows."""


class BoundExceeded(StreamingMomentsError):
    """An integer, or the memory that an operation needs, would exceed its bound."""


class SumExceeded(BoundExceeded):
    """A sum of statistics could exceed 2^62, the bound of its integer type."""


class NotIdentifiable(StreamingMomentsError):
    """The statistics do not identify the requested number of topics."""


class ShardError(StreamingMomentsError):
    """A shard cannot be read. `url` names the shard; `reason` has the problem and the remedy.

    Parameters
    ----------
    url : str
        URL of the shard.
    *reason : str or Remedy
        What is wrong and, often, what to do, without the URL.
    """

    def __init__(self, url: str, *reason: str | Remedy) -> None:
        super().__init__(url, *reason)
        self.url = url

    @property
    def reason(self) -> str:
        """What is wrong and what to do, without the URL."""
        return in_words(self.spell, *self.args[1:])

    def said(self, spell: Spell) -> str:
        return f"{printable(self.url)}: {in_words(spell, *self.args[1:])}"


class NoRoom(ShardError):
    """A shard is readable, but the sums of the store would overflow if its documents were added."""


class KillsWorkers(ShardError):
    """A shard cannot be read, because a worker crashes even if it reads no other shard."""


class PiecesOverlap(InvalidInput):
    """Pieces of a sequence overlap; `shards` names the shards that hold these pieces, if known.

    Parameters
    ----------
    reason : str or Remedy
        The pieces that overlap, and the remedy.
    shards : tuple of str
        URLs of the shards that hold these pieces.
    """

    def __init__(self, reason: str | Remedy, shards: tuple[str, ...] = ()) -> None:
        super().__init__(reason, shards)
        self.reason = reason
        self.shards = shards

    def said(self, spell: Spell) -> str:
        reason = in_words(spell, self.reason)
        shown = ", ".join(printable(url) for url in self.shards[:_SHOWN])
        more = f" and {len(self.shards) - _SHOWN} more" if len(self.shards) > _SHOWN else ""
        return f"{reason}; they came with {shown}{more}" if shown else reason


class StoreError(StreamingMomentsError):
    """A store is missing, exists where it must not, is damaged, or has another format."""


class Unfinished(StreamingMomentsError):
    """Part of the work is committed. The same call, made again, finishes the rest.

    The command line then exits with 4.
    """


def short(fingerprint: str) -> str:
    """Shorten a fingerprint for messages: keep the name of its hash and the first 12 digits.

    Examples
    --------
    >>> short("sha256:0123456789abcdef"), short("")
    ('sha256:0123456789ab', '(none)')
    """
    name, colon, digits = fingerprint.rpartition(":")
    return f"{name}{colon}{digits[:12]}" or "(none)"


def printable(text: str) -> str:
    r"""Return a text that is safe to print: escape control and unprintable characters.

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

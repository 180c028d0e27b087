"""Counted: which version counts the shards of a seal, noted in the inbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.seals import note_number, noted_number
from streaming_moments.storage.log.schema import Count, checked

COUNTED = "counted"
_REACHED = "counted.json"  # all seals up to it are counted


@dataclass(frozen=True)
class Counted:
    """What became of the shards of a seal.

    Parameters
    ----------
    version : int or None
        Of the store, that counts them; None where nothing is noted.
    left_out : mapping
        Why shards are not counted, by their path in the inbox.
    """

    version: Count | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


_COUNT: TypeAdapter[Counted] = TypeAdapter(Counted)


def read_counted(inbox: Inbox, number: int) -> Counted:
    """What is noted of a seal.

    Raises
    ------
    StoreError
        The note is damaged.
    """
    name = _file(number)
    data = inbox.folder.find(name)
    where = f"{inbox.folder.url}/{name}"
    return Counted() if data is None else checked(_COUNT, unseal(data, where), f"{where} is none")


def note_counted(inbox: Inbox, number: int, counted: Counted) -> None:
    """Note it; the same again changes nothing.

    Raises
    ------
    StoreError
        The storage cannot be written.
    """
    content = seal({"version": counted.version, "left_out": dict(counted.left_out)})
    inbox.folder.write(_file(number), content)


def counted_up_to(inbox: Inbox) -> int:
    """Number of a seal up to which all are counted or left out; errors as `read_counted`."""
    return noted_number(inbox.folder, _REACHED)


def note_reached(inbox: Inbox, number: int) -> None:
    """Note that all seals up to a number are; errors as `note_counted`."""
    note_number(inbox.folder, _REACHED, number)


def _file(number: int) -> str:
    return f"{COUNTED}/{number:020d}.json"

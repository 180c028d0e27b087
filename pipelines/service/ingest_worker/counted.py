"""Notes in the inbox that say which version of the store counts the shards of a seal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.log.schema import Count, checked

COUNTED = "counted"
# file with a number; the shards of all seals up to this number are counted
_REACHED = "counted.json"


@dataclass(frozen=True)
class Counted:
    """The result of counting the shards of a seal.

    version : version of the store that counts these shards; None if there is no note about the seal
    left_out : why a shard was not counted, by its path in the inbox
    """

    version: Count | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


_COUNT: TypeAdapter[Counted] = TypeAdapter(Counted)
_NUMBER: TypeAdapter[int] = TypeAdapter(Count)


def read_counted(inbox: Inbox, number: int) -> Counted:
    """Read the note that says how the shards of a seal were counted."""
    name = _file(number)
    data = inbox.folder.find(name)
    where = f"{inbox.folder.url}/{name}"
    return (
        Counted() if data is None else checked(_COUNT, unseal(data, where), f"{where} is invalid")
    )


def note_counted(inbox: Inbox, number: int, counted: Counted) -> None:
    """Write the note that says how the shards of a seal were counted.

    Repeating a call changes nothing.
    """
    content = seal({"version": counted.version, "left_out": dict(counted.left_out)})
    inbox.folder.write(_file(number), content)


def counted_up_to(inbox: Inbox) -> int:
    """Return the largest number such that all seals up to it are counted.

    Raises what `read_counted` raises.
    """
    data = inbox.folder.find(_REACHED)
    if data is None:
        return 0
    where = f"{inbox.folder.url}/{_REACHED}"
    return checked(
        _NUMBER, unseal(data, where).get("seal"), (f"{where} does not contain the number of a seal")
    )


def note_reached(inbox: Inbox, number: int) -> None:
    """Note that all seals up to a number are counted; raises what `note_counted` raises."""
    inbox.folder.write(_REACHED, seal({"seal": number}))


def _file(number: int) -> str:
    return f"{COUNTED}/{number:020d}.json"

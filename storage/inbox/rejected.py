"""Rejected documents: notes about invalid documents of a submission, stored with its receipt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.schema import Count, checked

LEFT_OUT = "left_out"
_AT_ONCE = 64  # number of notes that are read at the same time


@dataclass(frozen=True)
class LeftOut:
    """A rejected document.

    document : place of the document in the request, from 0
    field : name of the field; empty for the document itself
    reason : the problem, and the accepted values
    id : the id of the document. A deletion of that id deletes this note, too.
    """

    document: Count
    field: str
    reason: str
    id: str | None = None


_SEVERAL: TypeAdapter[tuple[LeftOut, ...]] = TypeAdapter(tuple[LeftOut, ...])


def note_left_out(folder: Folder, receipt: str, left_out: Sequence[LeftOut]) -> None:
    """Record which documents of a submission were rejected; repeating a call changes nothing.

    Examples
    --------
    >>> folder, receipt = Folder.at("memory://left-out-example"), "k" + "0" * 32
    >>> note_left_out(folder, receipt, [LeftOut(3, "text", "it is missing")])
    >>> read_left_out(folder, receipt)
    (LeftOut(document=3, field='text', reason='it is missing', id=None),)
    """
    folder.write(left_out_file(receipt), _sealed(left_out))


def read_left_out(folder: Folder, receipt: str) -> tuple[LeftOut, ...]:
    """Read which documents of a submission were rejected; empty without a note."""
    name = left_out_file(receipt)
    data, where = folder.find(name), f"{folder.url}/{name}"
    if data is None:
        return ()
    return _noted(data, where)


def _sealed(left_out: Sequence[LeftOut]) -> bytes:
    return seal({"left_out": _SEVERAL.dump_python(tuple(left_out), mode="json")})


def _noted(data: bytes, where: str) -> tuple[LeftOut, ...]:
    return checked(_SEVERAL, unseal(data, where).get("left_out"), f"{where} is not a valid note")


def forget_left_out(folder: Folder, receipts: Iterable[str]) -> None:
    """Delete the notes of some receipts, as their reasons may quote documents."""
    there = set(folder.names(LEFT_OUT))
    own = {f"{receipt}.json" for receipt in receipts}
    folder.delete([f"{LEFT_OUT}/{name}" for name in sorted(own & there)])


def forget_left_out_ids(folder: Folder, ids: Iterable[str]) -> None:
    """Delete the notes about documents with some ids, for all receipts.

    Notes of version 0.2.0 have no ids; of these, every entry that quotes one of the ids is deleted.
    """
    wanted = set(ids)
    names = [f"{LEFT_OUT}/{name}" for name in folder.names(LEFT_OUT)]
    for start in range(0, len(names), _AT_ONCE):
        several = names[start : start + _AT_ONCE]
        for name, data in zip(several, folder.find_all(several), strict=True):
            if data is None:
                continue
            noted = _noted(data, f"{folder.url}/{name}")
            left = tuple(one for one in noted if not _is_of(one, wanted))
            if not left:
                folder.delete([name])
            elif len(left) < len(noted):
                folder.write(name, _sealed(left))


def _is_of(one: LeftOut, ids: set[str]) -> bool:
    if one.id is not None:
        return one.id in ids
    return any(repr(name) in one.reason for name in ids)  # a reason quotes a value by its repr


def left_out_file(receipt: str) -> str:
    """Return the name of the file that notes the rejected documents of a receipt."""
    return f"{LEFT_OUT}/{receipt}.json"

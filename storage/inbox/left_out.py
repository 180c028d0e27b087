"""Left out: documents of a submission that were not taken, noted for as long as its receipt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.schema import Count, checked

LEFT_OUT = "left_out"


@dataclass(frozen=True)
class LeftOut:
    """A document that was not taken.

    Parameters
    ----------
    document : int
        Its place among those sent, from 0 on.
    field : str
        Which of its fields; empty for the document itself.
    reason : str
        What it is, and what is taken.
    """

    document: Count
    field: str
    reason: str


_SEVERAL: TypeAdapter[tuple[LeftOut, ...]] = TypeAdapter(tuple[LeftOut, ...])


def note_left_out(folder: Folder, receipt: str, left_out: Sequence[LeftOut]) -> None:
    """Note what was left out of a submission; the same again changes nothing.

    Raises
    ------
    StoreError
        The storage cannot be written.

    Examples
    --------
    >>> folder, receipt = Folder.at("memory://left-out-example"), "k" + "0" * 32
    >>> note_left_out(folder, receipt, [LeftOut(3, "text", "it is missing")])
    >>> read_left_out(folder, receipt)
    (LeftOut(document=3, field='text', reason='it is missing'),)
    """
    content = _SEVERAL.dump_python(tuple(left_out), mode="json")
    folder.write(left_out_file(receipt), seal({"left_out": content}))


def read_left_out(folder: Folder, receipt: str) -> tuple[LeftOut, ...]:
    """What was left out of a submission; nothing where nothing is noted.

    Raises
    ------
    StoreError
        The note is damaged.
    """
    name = left_out_file(receipt)
    data, where = folder.find(name), f"{folder.url}/{name}"
    if data is None:
        return ()
    return checked(_SEVERAL, unseal(data, where).get("left_out"), f"{where} is no such note")


def forget_left_out(folder: Folder, receipts: Iterable[str]) -> None:
    """Delete the notes of some receipts, as reasons may quote what was sent."""
    there = set(folder.names(LEFT_OUT))
    own = {f"{receipt}.json" for receipt in receipts}
    folder.delete([f"{LEFT_OUT}/{name}" for name in sorted(own & there)])


def left_out_file(receipt: str) -> str:
    """Name of the note of a receipt."""
    return f"{LEFT_OUT}/{receipt}.json"

"""Gone: notes of the lines that deletions have taken out of shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.seals import GONE, SealedShard, gone_file
from streaming_moments.storage.log.schema import Count, Digest, checked


@dataclass(frozen=True)
class Gone:
    """What a note says of the deleted lines of a shard.

    lines : numbers of the deleted lines, as they were sealed
    left : SHA-256 of what is left; None where nothing is, or in a note of an earlier version
    by : identity of the latest deletion
    """

    lines: tuple[Count, ...] = ()
    left: Digest | None = None
    by: str = ""


_GONE: TypeAdapter[Gone] = TypeAdapter(Gone)


def read_gone(folder: Folder, path: str) -> Gone:
    """Read the note of a shard's deleted lines; `path` is that of the shard in the inbox."""
    name = gone_file(path)
    data = folder.find(name)
    if data is None:
        return Gone()
    content = unseal(data, name)
    known = {key: content[key] for key in ("lines", "left", "by") if key in content}
    return checked(_GONE, {"lines": None, **known}, f"{name} names no lines")


def note_gone(
    folder: Folder, path: str, lines: Sequence[int], left: str | None, identity: str
) -> None:
    """Note lines that a deletion removed from a shard; repeating a call changes nothing.

    lines : numbers among the lines that were left before
    left : SHA-256 of what is left now
    identity : of the deletion
    """
    noted = read_gone(folder, path)
    if noted.by == identity:
        return  # noted twice, lines would be counted behind those that went
    gone = sorted({*noted.lines, *(as_sealed(line, noted.lines) for line in lines)})
    folder.write(gone_file(path), seal({"lines": gone, "by": identity, "left": left}))


def documents_left(folder: Folder, shard: SealedShard) -> int:
    """How many documents deletions have left in a shard; errors as `read_gone`."""
    return shard.documents - len(read_gone(folder, shard.path).lines)


def is_as_noted(folder: Folder, shard: SealedShard, digest: str) -> bool:
    """Whether bytes of this SHA-256 are a shard as it was sealed, or what deletions left of it.

    Notes of version 0.2.0 do not say what is left: any bytes beside such a note are.
    """
    if digest == shard.sha256:
        return True
    gone = read_gone(folder, shard.path)
    return bool(gone.lines) and gone.left in (None, digest)


def cut_shards(folder: Folder) -> list[str]:
    """Paths of all shards from which documents were deleted."""
    names = (file.path for file in folder.files(GONE) if not file.is_partial)
    return [name.removesuffix(".json") for name in names]


def as_sealed(line: int, gone: Sequence[int]) -> int:
    """Number of a line as it was sealed, from that among the lines that are left.

    Examples
    --------
    >>> [as_sealed(left, (0, 2)) for left in (0, 1, 2)]
    [1, 3, 4]
    """
    for one in sorted(gone):
        line += one <= line
    return line

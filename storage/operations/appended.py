"""Appended: finds records that were appended to files after they were counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.filesystems import shard_errors
from streaming_moments.storage.files.parts import (
    DOCUMENT,
    PartOfFile,
    first_byte,
    part_from,
    whole_of,
)
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.formats.compressions import compression_of
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.shards import Shard, ShardFormat, fingerprint, open_shard

# Matches the last counted byte of a file together with the bytes appended after it. Either the
# counted byte is a line end, or the appended bytes begin with one.
_LINE_ENDS = re.compile(rb"\n|[^\n]\r?\n", re.S)


@dataclass(frozen=True)
class Longer:
    """A file that may have grown after it was counted.

    records : ledger records of its counted parts: of the beginning, and of each part appended later
    document_bytes : size of the largest allowed record (a document), in bytes
    """

    shard: Shard
    records: tuple[ShardRecord, ...]
    form: ShardFormat
    document_bytes: int


@dataclass(frozen=True)
class Appended:
    """Complete records that were appended to a file.

    part : the part of the file with these records; None if there are none
    waiting : number of bytes of the incomplete record after them
    """

    part: Shard | None
    waiting: int


def counted_part(shard: Shard, record: ShardRecord) -> Shard:
    """Return a shard that reads only the counted part of a file, which may have grown since.

    Examples
    --------
    >>> record = ShardRecord("/logs/a.txt", 10, "sha256:00", documents=2, tokens=7)
    >>> counted_part(Shard("/logs/a.txt", 25), record).source
    '/logs/a.txt#bytes=0'
    """
    source = part_from(whole_of(shard.source), first_byte(record.url) or 0)
    return Shard(record.url, record.size, None, source)


def counted_shards(ledger: Ledger, shards: Iterable[Shard]) -> Iterator[Shard]:
    """Yield shards under the names with which the ledger has counted them.

    A file that has grown is counted in parts, so each of its counted parts is yielded.
    """
    for shard in shards:
        document = ledger.find(f"{shard.url}{DOCUMENT}")
        record, parts = ledger.find(shard.url), ledger.parts.get(shard.url, ())
        if record is None and document is not None:
            source = f"{shard.read_at}{DOCUMENT}" if shard.read_at else ""
            yield Shard(document.url, shard.size, shard.etag, source)
        elif parts or (record is not None and is_longer(shard, record)):
            counted = (record, *parts) if record is not None else parts
            yield from (counted_part(shard, one) for one in counted)
        else:
            yield shard


def is_longer(shard: Shard, record: ShardRecord) -> bool:
    """Whether a shard is a file that is longer than its counted part."""
    file = shard.etag is None and not shard.url.endswith("/")
    return file and shard.size > record.size


def appended_to(
    asked: Longer, storage_options: Mapping[str, object] | None = None
) -> Appended | None:
    """Find the part appended to a counted file; None if the counted part has changed.

    Reads the whole counted part once and compares its fingerprint. If the last counted record had
    no line end, the appended bytes must begin with one. Raises ShardError if an incomplete record
    is longer than the allowed `document_bytes`.
    """
    shard, last = asked.shard, asked.records[-1]
    kind = FORMATS[asked.form.kind_of(shard.url)]
    end = (first_byte(last.url) or 0) + last.size
    if not kind.grows or shard.size < end or compression_of(shard.source) is not None:
        return None
    if shard.url.startswith(("http://", "https://")):
        # parts of a file have names with a #, which would begin a fragment in an HTTP URL
        return None
    for record in asked.records:
        if fingerprint(counted_part(shard, record), storage_options) != record.fingerprint:
            return None
    with shard_errors(shard.source, storage_options):
        fs, path = open_shard(shard, storage_options)
        with PartOfFile(fs, end - 1, shard.size - end + 1).open(path) as stream:
            # if the last counted line had no line end, the appended bytes must begin with one
            joint = _LINE_ENDS.match(stream.read(3))
        if joint is None:
            return None if shard.size > end else Appended(None, 0)
        first = end - 1 + len(joint[0])
        rest = PartOfFile(fs, first, shard.size - first)
        with rest.open(path) as stream:
            whole = kind.whole_bytes(stream)
        waiting = rest.size - whole
        if waiting > asked.document_bytes:
            raise ShardError(
                shard.url,
                f"the record that begins at byte {first + whole} has no end within "
                f"{asked.document_bytes} bytes",
                "end it, or raise {option.max_document_bytes}",
            )
    source = part_from(shard.read_at, first) if shard.read_at else ""
    part = Shard(part_from(shard.url, first), whole, None, source)
    return Appended(part if whole else None, waiting)

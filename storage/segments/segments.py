"""Segments: immutable statistics of some shards, written by many workers, read by row block."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.statistics.base import Statistics, Totals
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.arrays import (
    ArraySpec,
    encode_chunks,
    encode_metadata,
    magnitude,
)
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.layout import SHARDS, SegmentLayout, segment_folder
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.log.manifests import (
    MANIFEST,
    FileRecord,
    files_to_json,
    read_files,
)
from streaming_moments.storage.log.record_files import table_to_parquet
from streaming_moments.storage.log.uncommitted import Uncommitted


@dataclass(frozen=True)
class Segment:
    """A complete (sealed) segment. Its documents count as soon as a commit names it.

    reference : what a commit stores about the segment
    basis : fingerprint of the foundation of its statistics
    shards : the counted shards
    written : files of the segment, which must exist when it is committed
    halves : whether sums of one half of the documents are stored separately
    halves_by_content : whether the content of a document, not its place, decides in which half the
        document is
    """

    reference: SegmentReference
    basis: str
    shards: tuple[ShardRecord, ...]
    written: Uncommitted
    halves: bool = False
    halves_by_content: bool = False


@dataclass(frozen=True)
class SegmentWriter:
    """Writes one segment: workers write its row blocks, then the coordinator seals it.

    Workers that write different blocks share no file. A block that is written again is replaced.

    id : the segment's 32 hexadecimal digits
    begun : a time before the first file was written, by the clock of the storage
    """

    folder: Folder
    id: str
    layout: SegmentLayout
    begun: datetime

    def write_block(self, statistics: Statistics) -> tuple[FileRecord, ...]:
        """Write the statistics of one row block; see `write_blocks`."""
        return self.write_blocks([statistics])

    def write_blocks(self, blocks: Sequence[Statistics]) -> tuple[FileRecord, ...]:
        """Write the statistics of row blocks. Files are written in parallel if the storage can.

        Raises ForeignStatistics if the statistics have another foundation, other rows or other
        arrays than the store's. Raises StoreError if a file cannot be written.
        """
        specs = self.layout.specs
        files: dict[str, bytes] = {}
        records = []
        for statistics in blocks:
            self._require_fitting(statistics)
            arrays = statistics.arrays()
            padded = {name: _padded(array, specs[name].chunks) for name, array in arrays.items()}
            encoded = encode_chunks(specs, padded, statistics.block.index)
            for path, content in encoded.items():
                largest = magnitude(arrays[path.partition("/")[0]])
                records.append(FileRecord.of(path, content, largest))
            files |= encoded
        self._write(files)
        return tuple(records)

    def take_over(self, segment: str, files: Sequence[FileRecord]) -> None:
        """Copy files of row blocks from an unfinished segment of another writer.

        Raises StoreError if a file has changed since it was written, or cannot be copied.
        """
        records = {record.path: record for record in files}
        for path, record in records.items():
            content = read_files(self.folder, segment_folder(segment), {path: record}, [path])
            self.folder.write(f"{segment_folder(self.id)}/{path}", content[path])

    def seal(
        self,
        totals: Totals,
        shards: Sequence[ShardRecord],
        files: Iterable[FileRecord],
        dates: DateRange | None = None,
    ) -> Segment:
        """Complete the segment: write the remaining files, and the manifest last.

        All files are made durable.

        Raises StoreError if a block is missing, or was written twice with different content. Raises
        InvalidInput if the shards do not add up to the totals, or a shard occurs twice.

        totals : totals of the records of all blocks
        shards : the counted shards; their documents and tokens add up to the totals
        files : all file records that calls of `write_block` returned; each block needs at least one
            call
        dates : days of the documents, if they have dates
        """
        records = self._complete(files)
        _require_adding_up(totals, shards)
        ledger = {SHARDS: table_to_parquet(table_of(shards))}
        digest, written = self._sealed(totals, records, ledger, len(shards), dates)
        reference = SegmentReference(
            self.id,
            digest,
            totals.n_documents,
            totals.n_tokens,
            len(shards),
            max(totals.bound, *(record.largest for record in records.values())),
            dates=dates,
        )
        foundation = self.layout.foundation
        return Segment(
            reference,
            foundation.fingerprint,
            tuple(shards),
            written,
            halves=foundation.told_halves,
            halves_by_content=foundation.halves_by_content,
        )

    def seal_beside(
        self, totals: Totals, ledger: Ledger, files: Iterable[FileRecord]
    ) -> tuple[str, Uncommitted]:
        """Finish a sum of segments that is stored in addition to these segments.

        The sum also stores the shard records of each of these segments.

        Returns the SHA-256 of the manifest, and the written files.
        """
        records = self._complete(files)
        shards = sum(table.num_rows for table in ledger.tables.values())
        return self._sealed(totals, records, {SHARDS: ledger.to_parquet()}, shards, None)

    def _sealed(
        self,
        totals: Totals,
        records: dict[str, FileRecord],
        more: Mapping[str, bytes],
        shards: int,
        dates: DateRange | None,
    ) -> tuple[str, Uncommitted]:
        """Write the files in `more`, all files still missing, and the manifest of the segment.

        Adds the records of these files to `records`.
        """
        tables = totals.tables()
        whole = {name: ArraySpec.whole(table, name) for name, table in tables.items()}
        specs = {**self.layout.specs, **whole}
        rest = {**encode_metadata(specs, {}), **encode_chunks(specs, tables), **more}
        folder = segment_folder(self.id)
        self._write(rest)
        records.update((path, FileRecord.of(path, content)) for path, content in rest.items())
        manifest = seal(
            {
                "id": self.id,
                "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **self.layout.foundation.names(),
                "documents": totals.n_documents,
                "tokens": totals.n_tokens,
                "shards": shards,
                "files": files_to_json(records.values()),
                **({} if dates is None else {"dates": dates.to_json()}),
            }
        )
        self.folder.write(f"{folder}/{MANIFEST}", manifest)
        self.folder.sync(folder)
        sizes = {path: record.size for path, record in records.items()}
        written = Uncommitted(folder, {**sizes, MANIFEST: len(manifest)}, self.begun)
        return hashlib.sha256(manifest).hexdigest(), written

    def _write(self, files: Mapping[str, bytes]) -> None:
        folder = segment_folder(self.id)
        self.folder.write_all({f"{folder}/{path}": content for path, content in files.items()})

    def _require_fitting(self, statistics: Statistics) -> None:
        layout = self.layout
        layout.foundation.require_own(statistics)
        if statistics.block.step != layout.row_blocks:
            raise ForeignStatistics(
                f"the statistics were counted with the rows in {statistics.block.step} blocks, but "
                f"the store has {layout.row_blocks}; count the shards again with this number"
            )

    def _complete(self, files: Iterable[FileRecord]) -> dict[str, FileRecord]:
        records: dict[str, FileRecord] = {}
        for record in files:
            if records.setdefault(record.path, record) != record:
                raise StoreError(
                    f"segment {self.id}: {record.path} was written twice with different content; "
                    "write the statistics into a new segment"
                )
        for index in range(self.layout.row_blocks):
            for path in self.layout.chunks(index):
                if path not in records:
                    raise StoreError(
                        f"segment {self.id}: row block {index} is not written ({path}); write "
                        "every block before the seal"
                    )
        return records


def _padded(array: NDArray[np.int64], chunk: tuple[int, ...]) -> NDArray[np.int64]:
    if len(array) == chunk[1]:
        return array[np.newaxis]
    padded = np.zeros(chunk, dtype=np.int64)
    padded[0, : len(array)] = array
    return padded


def _require_adding_up(totals: Totals, shards: Sequence[ShardRecord]) -> None:
    if len({shard.url for shard in shards}) < len(shards):
        raise InvalidInput("a shard is given twice in one segment; give each shard once")
    documents = sum(shard.documents for shard in shards)
    tokens = sum(shard.tokens for shard in shards)
    if (documents, tokens) != (totals.n_documents, totals.n_tokens):
        raise InvalidInput(
            f"the shards add up to {documents} documents and {tokens} vocabulary tokens, but the "
            f"statistics hold {totals.n_documents} and {totals.n_tokens}; give exactly the counted "
            "shards, with the counts of each"
        )

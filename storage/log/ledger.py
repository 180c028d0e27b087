"""Ledger: the list of counted shards of a version, so that no shard counts twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeGuard
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Remedy, Spell, remedy
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.quality.drift import outside_share
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.parts import DOCUMENT, FROM_BYTE, first_byte, whole_of
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.log.commits import SegmentReference, SegmentSum
from streaming_moments.storage.log.content_marks import OF_CONTENT, tells_content
from streaming_moments.storage.log.covering import Part, Summed, covered, segments_in
from streaming_moments.storage.log.layout import SHARDS, segment_folder
from streaming_moments.storage.log.manifests import require_file, segment_manifests
from streaming_moments.storage.log.origins import renamed
from streaming_moments.storage.log.record_files import (
    COLUMNS,
    record_schema,
    table_from_parquet,
    tables_from_parquet,
    tables_to_parquet,
)

_SHOWN = 5
_ROWS = 1 << 14  # number of records that are converted to objects at a time

# A list of a few URLs, or an Arrow column of many URLs.
Urls: TypeAlias = "Sequence[str] | pa.ChunkedArray"


class ShardsAlreadyCounted(StoreError):
    """Some shards of a segment are counted already; `urls` names them."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        super().__init__(urls)
        self.urls = urls

    def said(self, spell: Spell) -> str:
        shown = ", ".join(self.urls[:_SHOWN])
        more = f" and {len(self.urls) - _SHOWN} more" if len(self.urls) > _SHOWN else ""
        counted = f"{of_number(len(self.urls), 'shard')} {'is' if len(self.urls) == 1 else 'are'}"
        return f"{counted} counted already: {shown}{more}; count the other shards without them"


class CopiesCounted(StoreError):
    """Some shards have the same content as shards counted under other names.

    pairs : each shard, and the counted shard of the same content
    """

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def said(self, spell: Spell) -> str:
        shown = "; ".join(
            f"{url} {copy_of(other).said(spell)}" for url, other in self.pairs[:_SHOWN]
        )
        more = f"; and {len(self.pairs) - _SHOWN} more" if len(self.pairs) > _SHOWN else ""
        return f"{shown}{more}"


def copy_of(other: str) -> Remedy:
    """Return the reason and remedy for a shard with the same content as a counted one."""
    text = "has the same content as {other}; leave it out, or count it without {update.unique}"
    return remedy(text, other=other)


@dataclass(frozen=True)
class ShardRecord:
    """A counted shard.

    Raises InvalidInput if the fingerprint has neither of the forms below, a number is negative, or
    the URL holds a password.

    size : stored size in bytes
    fingerprint : fingerprint of the content: "etag:..." or "sha256:..."
    documents : number of counted documents; number of passages if documents are cut
    tokens : number of counted tokens in the vocabulary
    outside : number of tokens outside the vocabulary, which were not counted
    """

    url: str
    size: int
    fingerprint: str
    documents: int
    tokens: int
    outside: int = 0

    def __post_init__(self) -> None:
        if not self.fingerprint.startswith(("etag:", "sha256:")):
            raise InvalidInput(
                f"shard {self.url} has fingerprint {self.fingerprint!r}; give etag:... or "
                "sha256:..."
            )
        if min(self.size, self.documents, self.tokens, self.outside) < 0:
            raise InvalidInput(f"shard {self.url} has a negative size or count; give at least 0")
        if "://" in self.url and urlsplit(self.url).password is not None:
            raise InvalidInput(
                "a shard's URL holds a password; give the password in the storage options"
            )

    @property
    def unnamed(self) -> ShardRecord:
        """The record without the name; a renaming changes only the name."""
        return replace(self, url="")


def table_of(records: Iterable[ShardRecord]) -> pa.Table:
    """Convert records to an Arrow table."""
    return pa.Table.from_pylist([vars(record) for record in records], schema=record_schema())


@dataclass(frozen=True, eq=False)
class Ledger:
    """The ledger of a version, which has a record of each counted shard.

    tables : arrow table of the records of each segment, by the segment's id
    removed : identifiers of subtracted segments, whose records do not count

    Examples
    --------
    >>> record = ShardRecord("s3://corpus/1.txt", 10, "etag:d41d", documents=2, tokens=7)
    >>> ledger = Ledger({"0a": table_of([record])})
    >>> len(ledger), ledger.find("s3://corpus/1.txt").documents, ledger.find("2.txt")
    (1, 2, None)
    """

    tables: Mapping[str, pa.Table]
    removed: frozenset[str] = frozenset()

    __repr__ = short_repr

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[ShardRecord]:
        batches = self.table.to_batches(_ROWS)
        return (ShardRecord(**row) for batch in batches for row in batch.to_pylist())

    def records(self, segment: str) -> tuple[ShardRecord, ...]:
        """Return the records of the segment with this identifier."""
        return tuple(ShardRecord(**row) for row in self.tables[segment].to_pylist())

    def of_segments(self, references: Iterable[SegmentReference]) -> Ledger:
        """Return the ledger of some segments; each is added or subtracted, as its sign says."""
        chosen = list(references)
        removed = frozenset(part.id for part in chosen if part.sign < 0)
        return Ledger({part.id: self.tables[part.id] for part in chosen}, removed)

    def to_parquet(self) -> bytes:
        """Encode the records of all segments as the ledger of their sum; see `tables_of_sums`."""
        return tables_to_parquet(self.tables)

    def holds_any(self, segment: str, urls: Iterable[str]) -> bool:
        """Whether the segment with this identifier has a record of at least one of the URLs."""
        column = self.tables[segment]["url"]
        return bool(pc.any(pc.is_in(column, pa.array(list(urls), pa.string()))).as_py())

    def held(self, segment: str, urls: Iterable[str]) -> set[str]:
        """Return which of the URLs have a record in the segment with this identifier."""
        column = self.tables[segment]["url"]
        return set(column.filter(pc.is_in(column, pa.array(list(urls), pa.string()))).to_pylist())

    def find(self, url: str) -> ShardRecord | None:
        """Return the record of a shard; None if it is not counted."""
        place = self._places.get(url)
        if place is None:
            return None
        return ShardRecord(**{name: self.table[name][place].as_py() for name in [*COLUMNS]})

    def beside(self, urls: Urls, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Return the records of some URLs in order; a row of nulls for each uncounted URL.

        Examples
        --------
        >>> ledger = Ledger({"0a": table_of([ShardRecord("a.txt", 10, "etag:d41d", 2, 7)])})
        >>> ledger.beside(["b.txt", "a.txt"], ["size"])["size"].to_pylist()
        [None, 10]
        """
        given = _column(urls)
        # Often a few URLs are given and many are counted, so first select the counted URLs that are
        # given.
        table = self.table.select(list(dict.fromkeys(["url", *columns])))
        counted = table.filter(pc.is_in(table["url"], given))
        return counted.select(columns).take(pc.index_in(given, counted["url"]))

    @cached_property
    def parts(self) -> Mapping[str, tuple[ShardRecord, ...]]:
        """Records of parts appended to counted files, by the URL of the file, in order."""
        table = self.table
        table = table.filter(pc.match_substring(table["url"], FROM_BYTE))
        found: dict[str, list[ShardRecord]] = {}
        for row in table.to_pylist():
            if first_byte(row["url"]) is not None:
                found.setdefault(whole_of(row["url"]), []).append(ShardRecord(**row))
        return {
            url: tuple(sorted(records, key=lambda one: first_byte(one.url) or 0))
            for url, records in found.items()
        }

    def counted(self, urls: Sequence[str]) -> tuple[str, ...]:
        """Return which of the URLs are counted already, in the given order."""
        given = pa.array(urls, pa.string())
        counted = self.table["url"]
        found = set(counted.filter(pc.is_in(counted, given)).to_pylist())
        return tuple(url for url in urls if url in found)

    def under(self, beginning: str) -> tuple[str, ...]:
        """Return counted URLs that begin with a text, sorted."""
        urls = self.table["url"]
        return tuple(sorted(urls.filter(pc.starts_with(urls, beginning)).to_pylist()))

    def copies(
        self, records: Sequence[ShardRecord], away: Set[str] = frozenset()
    ) -> tuple[tuple[str, str], ...]:
        """Return pairs: the URL of a record, and another name under which its content is counted.

        Compares sizes, and fingerprints that identify content. Among several records of the same
        content, all but the first are copies. Counted shards in `away` are ignored.
        """
        telling = [record for record in records if tells_content(record.fingerprint)]
        marks = pa.array([record.fingerprint for record in telling], pa.string())
        alike = self.table.filter(pc.is_in(self.table["fingerprint"], marks))
        first: dict[tuple[str, int], str] = {}
        given = away | {record.url for record in telling}
        columns = (alike[name].to_pylist() for name in ("url", "fingerprint", "size"))
        for url, mark, size in zip(*columns, strict=True):
            if url not in given:
                first.setdefault((mark, size), url)
        found = []
        for record in telling:
            other = first.setdefault((record.fingerprint, record.size), record.url)
            if other != record.url:
                found.append((record.url, other))
        return tuple(found)

    def contents(self, sizes: NDArray[np.int64] | None = None) -> dict[tuple[str, int], str]:
        """Map each content (fingerprint and size) to the URL of the first shard that has it.

        Only fingerprints that identify content are used. With `sizes`, only contents of these sizes
        are returned.
        """
        table = self.table
        if sizes is not None:
            table = table.filter(pc.is_in(table["size"], pa.array(np.unique(sizes))))
        table = table.filter(pc.match_substring_regex(table["fingerprint"], OF_CONTENT))
        first: dict[tuple[str, int], str] = {}
        for batch in table.select(("fingerprint", "size", "url")).to_batches(_ROWS):
            for mark, size, url in zip(*map(pa.Array.to_pylist, batch), strict=True):
                first.setdefault((mark, size), url)
        return first

    def same_content(self, records: pa.Table) -> pa.ChunkedArray:
        """For each record, return the name of a counted shard that has the same content, or null.

        Only fingerprints that identify content are compared.

        Examples
        --------
        >>> md5 = "etag:d41d8cd98f00b204e9800998ecf8427e"
        >>> ledger = Ledger({"0a": table_of([ShardRecord("a.txt", 10, md5, 2, 7)])})
        >>> news = [ShardRecord("b.txt", 10, md5, 2, 7), ShardRecord("c.txt", 11, md5, 2, 7)]
        >>> ledger.same_content(table_of(news)).to_pylist()
        ['a.txt', None]
        """
        # compare the fingerprints first, because most of them occur only once
        marks = records["fingerprint"]
        marks = marks.filter(pc.match_substring_regex(marks, OF_CONTENT))
        alike = self.table.filter(pc.is_in(self.table["fingerprint"], marks))
        return alike["url"].take(pc.index_in(_contents(records), _contents(alike)))

    def overlaps(self, urls: Urls) -> tuple[tuple[str, str], ...]:
        """Pair URLs with counted shards that hold the same documents.

        A counted folder may contain a URL, or a given folder may contain counted shards. A file may
        also be given as a whole, but counted as one document or in parts. Or it may be given as one
        document, but counted as a whole.
        """
        given, counted = _column(urls), self.table["url"]
        folders, above = set(_folders(counted)), set(_folders(given))
        within: dict[str, list[str]] = {}
        for other in _texts(counted) if above else ():
            for folder in _above(other):
                if folder in above:
                    within.setdefault(folder, []).append(other)
        found = []
        for url in _texts(given) if folders or within else ():
            found += [(url, folder) for folder in _above(url) if folder in folders]
            found += [(url, other) for other in within.get(url, ())]
        single = pc.ends_with(given, DOCUMENT)
        twins = [(url, whole_of(url)) for url in given.filter(single).to_pylist()]
        if pc.any(pc.ends_with(counted, DOCUMENT)).as_py():
            twins += [(url, f"{url}{DOCUMENT}") for url in _texts(given.filter(pc.invert(single)))]
        for url in _texts(given) if self.parts else ():
            twins += [(url, part.url) for part in self.parts.get(url, ())]
        both = set(self.counted([other for _, other in twins]))
        return tuple(found + [pair for pair in twins if pair[1] in both])

    def repeated(self) -> tuple[str, ...]:
        """Return URLs that are counted more than once; an intact ledger has none."""
        counts = self.table["url"].combine_chunks().value_counts()
        twice = pc.greater(counts.field("counts"), 1)
        return tuple(counts.field("values").filter(twice).to_pylist())

    def overdrawn(self) -> tuple[str, ...]:
        """Return URLs that are subtracted more often than added; an intact ledger has none."""
        net = self._net
        return tuple(net["url"].filter(pc.less(net["sign_sum"], 0)).to_pylist())

    @cached_property
    def table(self) -> pa.Table:
        """Records of the counted shards as an Arrow table."""
        if self.removed.isdisjoint(self.tables):
            tables = list(self.tables.values())
            return (
                pa.concat_tables(tables) if tables else pa.Table.from_batches([], record_schema())
            )
        net = self._net
        counted = net.filter(pc.greater(net["sign_sum"], 0))
        # repeat a record that is counted twice, so that `repeated` finds it
        times = np.repeat(np.arange(counted.num_rows), counted["sign_sum"].to_numpy())
        return counted.select([*COLUMNS]).take(pa.array(times))

    @property
    def _net(self) -> pa.Table:
        """Distinct records, each with the sum of the signs of its segments."""
        signed = [
            table.append_column(
                "sign", pa.repeat(-1 if name in self.removed else 1, table.num_rows)
            )
            for name, table in self.tables.items()
        ]
        empty = record_schema().append(pa.field("sign", pa.int64())).empty_table()
        # use no threads, so that the records keep their order
        grouped = pa.concat_tables([empty, *signed]).group_by([*COLUMNS], use_threads=False)
        return grouped.aggregate([("sign", "sum")])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {url: place for place, url in enumerate(self.table["url"].to_pylist())}


def _contents(records: pa.Table) -> pa.ChunkedArray:
    """Return the fingerprint and size of each record as one text."""
    return pc.binary_join_element_wise(
        records["fingerprint"], pc.cast(records["size"], pa.string()), " "
    )


def _column(urls: Urls) -> pa.ChunkedArray:
    given = isinstance(urls, pa.ChunkedArray)
    return urls if given else pa.chunked_array([pa.array(list(urls), pa.string())])


def _folders(urls: pa.ChunkedArray) -> list[str]:
    found: list[str] = urls.filter(pc.ends_with(urls, "/")).to_pylist()
    return found


def _texts(urls: pa.ChunkedArray) -> Iterator[str]:
    return (url for chunk in urls.chunks for url in chunk.to_pylist())


def _above(url: str) -> Iterator[str]:
    """Yield the folders that contain a file or folder, the nearest first."""
    above = url.rstrip("/")
    while "/" in above:
        above = above.rpartition("/")[0]
        yield f"{above}/"


def read_ledger(
    folder: Folder,
    references: Sequence[SegmentReference],
    known: Ledger,
    sums: Iterable[SegmentSum] = (),
) -> Ledger:
    """Read the ledger of some segments; tables in `known` are not read again.

    The records of segments with a sum among `sums` are read from the sum, as one file.
    """
    tables = dict(known.tables)
    if any(reference.id not in tables for reference in references):
        _read_sums(folder, covered(references, sums), tables)
    missing = [reference for reference in references if reference.id not in tables]
    for reference, content, where in _ledger_files(folder, missing):
        if content is None:
            raise StoreError(f"{where} is not in the manifest; restore the segment from a copy")
        table = table_from_parquet(content, where)
        origin = reference.origin
        tables[reference.id] = table if origin is None else renamed(table, origin)
    removed = frozenset(reference.id for reference in references if reference.sign < 0)
    return Ledger({reference.id: tables[reference.id] for reference in references}, removed)


def _read_sums(folder: Folder, parts: Iterable[Part], tables: dict[str, pa.Table]) -> None:
    """Add to `tables` those of segments that it lacks, from their sums or sums nested in these."""
    waiting = [part for part in parts if _lacks(part, tables)]
    while waiting:
        found = tables_of_sums(folder, waiting)
        for one in found:
            tables.update(one or {})
        apart = [part for part, one in zip(waiting, found, strict=True) if one is None]
        waiting = [one for part in apart for one in part.of if _lacks(one, tables)]


def _lacks(part: Part, tables: Mapping[str, pa.Table]) -> TypeGuard[Summed]:
    return isinstance(part, Summed) and any(one.id not in tables for one in segments_in(part))


def tables_of_sums(folder: Folder, sums: Sequence[Summed]) -> list[dict[str, pa.Table] | None]:
    """Read from each sum the records of its segments, by segment; None if records are missing.

    Earlier versions of the package wrote sums without records, and a sum may be missing or damaged.
    """
    references, found = [replace(one.reference, sign=1) for one in sums], []
    try:
        for one, (_, content, where) in zip(sums, _ledger_files(folder, references), strict=True):
            tables = None if content is None else tables_from_parquet(content, where)
            shards = {part.id: part.shards for part in segments_in(one)}
            held = {name: table.num_rows for name, table in (tables or {}).items()}
            found.append(tables if held == shards else None)
    except StoreError:
        return [None] if len(sums) == 1 else [tables_of_sums(folder, [one])[0] for one in sums]
    return found


def _ledger_files(
    folder: Folder, references: Sequence[SegmentReference]
) -> Iterator[tuple[SegmentReference, bytes | None, str]]:
    """Yield for each segment or sum the content of its ledger, or None, and the ledger's place."""
    manifests = segment_manifests(folder, references)
    names = [f"{segment_folder(one.id)}/{SHARDS}" for one in references]
    there = [name for name, one in zip(names, manifests, strict=True) if SHARDS in one.files]
    found = dict(zip(there, folder.read_all(there), strict=True))
    for reference, manifest, name in zip(references, manifests, names, strict=True):
        where, content = f"{folder.url}/{name}", found.get(name)
        if content is not None:
            require_file(where, content, manifest.files[SHARDS])
        yield reference, content, where


def outside_of(records: Sequence[ShardRecord]) -> float | None:
    """Return what share of the tokens of shards is outside the vocabulary; None without tokens."""
    return outside_share(sum(one.tokens for one in records), sum(one.outside for one in records))

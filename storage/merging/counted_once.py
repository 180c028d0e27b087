"""Counted once: finds shards of an origin that this store or another origin counts as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.forgotten import Forgotten, said_of_forgotten
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.operations.compaction import linked_groups

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")

_SHOWN = 5
_ROWS = 1 << 14  # number of records that are converted to objects at a time


class ShardsRefused(InvalidInput):
    """Shards of other stores would count twice, or must not be counted here.

    Parameters
    ----------
    problem, remedy : str
        As for any InvalidInput.
    stores : tuple of str
        URLs of the stores that count such shards.
    """

    def __init__(self, problem: str, remedy: str, stores: tuple[str, ...] = ()) -> None:
        super().__init__(problem, remedy)
        self.stores = stores


def fresh_records(
    ledger: Ledger, news: Sequence[SegmentReference], theirs: Sequence[SegmentReference]
) -> pa.Table:
    """Return records of the shards of an origin that are new in a pull.

    They are in the segments `news` of the origin, but not in `theirs`, those of the previous pull.
    """
    before, after = ({part.id for part in parts} for parts in (theirs, news))
    added = [part for part in news if part.id not in before]
    gone = [replace(part, sign=-part.sign) for part in theirs if part.id not in after]
    return ledger.of_segments([*added, *gone]).table


def refusal(
    parts: Sequence[SegmentReference],
    ledger: Ledger,
    forgotten: Forgotten,
    fresh: pa.Table,
    name: str,
    again: bool = False,
) -> tuple[str, str] | None:
    """Return problem and remedy if new shards of an origin are refused; None if accepted.

    Shards are refused if another origin or this store counts them, by name or content. Shards that
    are `forgotten` here are refused unless `again` is True. `parts` are all segments of the new
    version.
    """
    if not fresh.num_rows:
        return None
    rest = [part for part in parts if not part.is_of(name)]
    places, others = counted_elsewhere(ledger.of_segments(rest), fresh)
    if places.size:
        shown = zip(fresh["url"].take(places[:_SHOWN]).to_pylist(), others, strict=True)
        lines = "; ".join(
            f"{url} {_is_counted(url, other)} by {_counter(rest, ledger, other)}"
            for url, other in shown
        )
        more = f"; and {places.size - _SHOWN:,} more" if places.size > _SHOWN else ""
        return (
            f"shards of {name} would count twice: {lines}{more}",
            "if they have moved, give both stores to one {merge}; otherwise forget them in one "
            "store, or leave out segments without other shards by {merge.unique}",
        )
    unwanted = [] if again else list(_unwanted(forgotten, fresh))
    if unwanted:
        return (
            f"{name} counts shards that must not be counted here: {said_of_forgotten(unwanted)}",
            "forget or purge them there, too, or permit them here by {merge.include_forgotten}",
        )
    return None


def counted_elsewhere(others: Ledger, records: pa.Table) -> tuple[NDArray[np.int64], list[str]]:
    """Find records whose shards, or copies of them, are also counted by other segments.

    Returns the places of these records, and the names that the first few have in the other
    segments. Shards without documents are not compared by content.
    """
    urls = records["url"]
    overlaps = dict(others.overlaps(urls))
    # first select the counted names that are among the new ones, as these are few
    counted = others.table["url"]
    same = pc.is_in(urls, counted.filter(pc.is_in(counted, urls)))
    within = pc.is_in(urls, pa.array(list(overlaps), pa.string()))
    names = _unless_empty(records, others.same_content(records))
    found = pc.or_(pc.or_(same, within), pc.is_valid(names))
    places = np.flatnonzero(found.to_numpy())
    first = places[:_SHOWN]
    shown = zip(*(one.take(first).to_pylist() for one in (urls, same, names)), strict=True)
    return places, [url if own else overlaps.get(url, name) for url, own, name in shown]


def without_copies(
    segments: Sequence[SegmentReference], ledger: Ledger, others: Ledger
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Find the segments of an origin whose shards are all counted elsewhere.

    Returns the identifiers of these segments and the names of their shards. A segment is left out
    together with the segments that subtract its shards. `ledger` has the records of the segments,
    with the names that the shards have in this store.
    """
    groups = linked_groups(segments, ledger)
    # ignore shards without documents, which do not decide which segments are left out
    tables = [_with_documents(ledger.of_segments(group).table) for group in groups]
    if not tables:
        return frozenset(), ()
    numbers = np.repeat(np.arange(len(groups)), [table.num_rows for table in tables])
    records = pa.concat_tables(tables)
    copied = _copied(others, records)
    rest = np.bincount(numbers[~copied], minlength=len(groups))
    out = [
        bool(table.num_rows) and not left for table, left in zip(tables, rest.tolist(), strict=True)
    ]
    gone = frozenset(
        part.id for group, is_out in zip(groups, out, strict=True) if is_out for part in group
    )
    names = records["url"].filter(pa.array(np.array(out)[numbers])).to_pylist()
    return gone, tuple(names)


def _copied(others: Ledger, records: pa.Table) -> NDArray[np.bool_]:
    """Return for each record whether other segments count a shard of the same content.

    A shard with the same name and fingerprint has the same content, for any type of fingerprint.
    """
    known = others.beside(records["url"], ("fingerprint",))["fingerprint"]
    same = pc.fill_null(pc.equal(known, records["fingerprint"]), False)
    found = pc.or_(same, pc.is_valid(others.same_content(records)))
    return np.asarray(found.to_numpy(), dtype=bool)


def _unless_empty(records: pa.Table, names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(records["documents"], 0), pa.scalar(None, pa.string()), names)


def _with_documents(records: pa.Table) -> pa.Table:
    return records.filter(pc.greater(records["documents"], 0))


def _unwanted(forgotten: Forgotten, records: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield the shards that this store has forgotten or purged, each with the reason."""
    chosen = records.select(("url", "fingerprint", "size"))
    for batch in chosen.to_batches(_ROWS) if forgotten else ():
        for url, *content in zip(*map(pa.Array.to_pylist, batch), strict=True):
            why = forgotten.reason(url, (content[0], content[1]))
            if why is not None:
                yield url, why


def _is_counted(url: str, other: str) -> str:
    return "is counted" if url == other else f"is counted as {other}"


def _counter(parts: Sequence[SegmentReference], ledger: Ledger, url: str) -> str:
    """Describe the store or origin that counts a shard."""
    for name in {part.origin.partition("/")[0]: None for part in parts if part.origin}:
        if ledger.of_segments(part for part in parts if part.is_of(name)).counted([url]):
            return f"origin {name}"
    return "this store"

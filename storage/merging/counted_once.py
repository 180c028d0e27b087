"""Counted once: shards that an origin counts, and this store or another origin as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.forgotten import said_of_forgotten
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.operations.compaction import linked_groups

_SHOWN = 5


def fresh_records(
    ledger: Ledger, news: Sequence[SegmentReference], theirs: Sequence[SegmentReference]
) -> tuple[ShardRecord, ...]:
    """Return the records of shards that segments count and earlier ones of the origin did not."""
    if {part.id for part in news} == {part.id for part in theirs}:
        return ()
    before = set(ledger.of_segments(theirs))
    return tuple(one for one in ledger.of_segments(news) if one not in before)


def require_counted_once(
    head: Commit, ledger: Ledger, fresh: Sequence[ShardRecord], name: str, again: bool = False
) -> None:
    """Refuse new shards of an origin that are counted elsewhere, by name or content, or forgotten.

    Raises InvalidInput with the names of the first few. `again` permits forgotten ones.
    """
    rest = [part for part in head.segments if not part.is_of(name)]
    found = counted_elsewhere(ledger.of_segments(rest), fresh)
    if found:
        lines = "; ".join(
            f"{url} {_is_counted(url, other)} by {_counter(head, ledger, other)}"
            for url, other in list(found.items())[:_SHOWN]
        )
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InvalidInput(
            f"shards of {name} would count twice: {lines}{more}",
            "forget them on one side, or leave out segments that hold nothing else by "
            "{merge.unique}",
        )
    if again:
        return
    reasons = (
        (one.url, head.forgotten.reason(one.url, (one.fingerprint, one.size))) for one in fresh
    )
    unwanted = [(url, why) for url, why in reasons if why is not None] if head.forgotten else []
    if unwanted:
        raise InvalidInput(
            f"{name} counts what is not to be counted here: {said_of_forgotten(unwanted)}",
            "forget or purge it there, too, or permit it here by {merge.include_forgotten}",
        )


def counted_elsewhere(others: Ledger, records: Iterable[ShardRecord]) -> dict[str, str]:
    """Map the names of shards that other segments count, by name or content, to the names there.

    Shards without documents may have the same content.
    """
    records = list(records)
    urls = [one.url for one in records]
    found = {url: url for url in others.counted(urls)}
    found.update(others.overlaps(urls))
    telling = [one for one in records if one.documents and tells_content(one.fingerprint)]
    if telling:
        sizes = np.array([one.size for one in telling], dtype=np.int64)
        contents = others.contents(sizes)
        for one in telling:
            other = contents.get((one.fingerprint, one.size))
            if other is not None:
                found.setdefault(one.url, other)
    return found


def without_copies(
    segments: Sequence[SegmentReference], ledger: Ledger, others: Ledger
) -> tuple[tuple[SegmentReference, ...], tuple[str, ...]]:
    """Return the segments of an origin without those whose shards are all counted elsewhere.

    A segment is left out with those that subtract its shards. The second value names the shards.
    `ledger` has the records of the segments, by the names here.
    """
    kept: list[SegmentReference] = []
    left_out: list[str] = []
    for group in linked_groups(segments, ledger):
        # shards without documents may stay or not
        records = [one for one in ledger.of_segments(group) if one.documents]
        found = _copied(others, records)
        if records and len(found) == len(records):
            left_out += found
        else:
            kept += group
    chosen = {(part.id, part.sign) for part in kept}
    return tuple(one for one in segments if (one.id, one.sign) in chosen), tuple(left_out)


def _copied(others: Ledger, records: Sequence[ShardRecord]) -> list[str]:
    """Return the names of shards whose content other segments count, too."""
    sizes = np.array([one.size for one in records], dtype=np.int64)
    contents = others.contents(sizes) if records else {}
    found = []
    for one in records:
        same = others.find(one.url)
        is_same = same is not None and same.fingerprint == one.fingerprint
        if is_same or (one.fingerprint, one.size) in contents:
            found.append(one.url)
    return found


def _is_counted(url: str, other: str) -> str:
    return "is counted" if url == other else f"is counted as {other}"


def _counter(head: Commit, ledger: Ledger, url: str) -> str:
    """Say who counts a shard."""
    for name in head.origins:
        theirs = ledger.of_segments(part for part in head.segments if part.is_of(name))
        if theirs.find(url) is not None:
            return f"origin {name}"
    return "this store"

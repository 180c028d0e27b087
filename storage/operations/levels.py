"""Levels: chooses segments to merge, so that a fit reads few of them after any number of commits.

The weight of a segment is its number of documents plus its number of shards. Its level is the
logarithm of the weight, to the base of the number of segments merged at once. A sum has a higher
level than its parts, so each segment is summed at most once for each level.

Segments of the same day are replaced by their sum. Segments of different days stay, because a model
of some days, or the shares of topics over time, need the counts of each day. The sum of such
segments is stored beside them.

Some segments and sums remain on each level. If they are many, one sum of all of them is stored, the
sum of all days. The next sum of all days replaces it. A fit of all days reads this sum and the few
later segments.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from itertools import chain
from typing import TypeAlias

from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.log.commits import Commit, SegmentReference, SegmentSum
from streaming_moments.storage.log.covering import (
    Part,
    added,
    covered,
    reference_of,
    segments_in,
    without_whole,
)
from streaming_moments.storage.log.layout import SEGMENTS
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.operations.compaction import SegmentsChanged, linked_groups
from streaming_moments.storage.segments.blocks import sum_totals
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.store.store import MomentStore

FEWEST = 2
_Days: TypeAlias = tuple[date, date] | None


def level_of(weight: int, base: int) -> int:
    """Return the level of a segment with this weight.

    Examples
    --------
    >>> [level_of(weight, 8) for weight in (0, 7, 8, 63, 64)]
    [0, 0, 1, 1, 2]
    """
    level = 0
    while weight >= base:
        weight //= base
        level += 1
    return level


def segments_to_replace(
    references: Sequence[SegmentReference], ledger: Ledger, after: int, by: Bucket = "day"
) -> tuple[SegmentReference, ...]:
    """Return the next segments to replace by their sum; empty if there is nothing to merge.

    The returned segments have the same vocabulary and the same day. On the latest day, `after`
    segments of the same level are merged at once. On each earlier day, two segments are merged at
    once, so levels have base 2. A segment that subtracts shards is merged with the segments that
    hold these shards, unless this group contains segments of several days.

    references : segments of a version. Segments of origins are never merged. If there are fewer
        than `after` other segments, nothing is merged.
    after : 2 or more
    by : {"day", "month", "year", "all"}, period whose segments may be added up
    """
    references = [part for part in references if part.origin is None]
    if len(references) < after:
        return ()
    heaps: dict[tuple[_Days, int | None, int], list[tuple[SegmentReference, ...]]]
    heaps = defaultdict(list)
    latest = _latest(references, by)
    for linked in linked_groups(references, ledger):
        days = {_bucket(part, by) for part in linked}
        if len(days) > 1:
            continue
        if len(linked) >= after:
            return linked
        [bucket] = days
        over = bucket is not None and latest is not None and bucket[1] < latest
        most = FEWEST if over else after
        level = level_of(sum(part.sign * _weight(part) for part in linked), most)
        heap = heaps[bucket, linked[0].words, level]
        heap.append(linked)
        if len(heap) == most:
            return tuple(chain.from_iterable(heap))
    return ()


def parts_to_sum(
    commit: Commit, after: int, by: Bucket = "day", gone: frozenset[str] = frozenset()
) -> tuple[Part, ...]:
    """Return the next parts of a version (segments or stored sums) to add up.

    They stay in the version, beside their sum.

    These are the earliest `after` parts of the same level, vocabulary and sign, or none. Segments
    of the latest day, month or year are left out if there are others, because `segments_to_replace`
    may choose them. `gone` are the results of `sums_gone`, which are ignored.
    """
    heaps: dict[tuple[int | None, int, int], list[Part]] = defaultdict(list)
    for part in _days_gone_by(commit, _kept(without_whole(commit.sums), gone), by):
        own = reference_of(part)
        heaps[own.words, own.sign, level_of(_weight(own), after)].append(part)
    for heap in heaps.values():
        if len(heap) >= after:
            return tuple(sorted(heap, key=_first_day)[:after])
    return ()


def parts_of_whole(
    commit: Commit, after: int, by: Bucket = "day", gone: frozenset[str] = frozenset()
) -> tuple[Part, ...]:
    """Return the parts of the next sum of all days; empty while a fit reads few parts.

    These are all parts of one vocabulary and sign, except those of the latest day, as in
    `parts_to_sum`. The result is empty if a fit needs to read only few segments and stored sums for
    these parts: at most two, or at most `after` / 2.
    """
    read = Counter(map(_era, _days_gone_by(commit, _kept(commit.sums, gone), by)))
    for era, number in read.items():
        if number > max(FEWEST, after // 2):
            levels = _kept(without_whole(commit.sums), gone)
            return tuple(part for part in _days_gone_by(commit, levels, by) if _era(part) == era)
    return ()


def read_for(
    commit: Commit, parts: Sequence[Part], gone: frozenset[str] = frozenset()
) -> tuple[Part, ...]:
    """Return the parts to read for the sum of `parts`; a stored sum may take the place of several.

    The signs of the parts are ignored: all returned parts have sign 1.
    """
    segments = [segment for part in parts for segment in segments_in(part)]
    return tuple(map(added, covered(segments, _kept(commit.sums, gone))))


def sums_gone(store: MomentStore) -> frozenset[str]:
    """Return the identifiers of the stored sums of a version that have lost their files.

    `gc` of release 0.2.0 deletes the files of such sums, because it does not know them.
    """
    live = {one.id for one in store.commit.live_sums}
    return frozenset(live.difference(store.folder.names(SEGMENTS)) if live else ())


def commit_sum(
    store: MomentStore,
    writer: SegmentWriter,
    files: Sequence[FileRecord],
    parts: Sequence[Part],
    gone: frozenset[str] = frozenset(),
    whole: bool = False,
) -> MomentStore:
    """Seal the sum of parts of a version, and commit it in addition to them.

    With `whole`, the new sum replaces the earlier sums of all days with the same vocabulary and
    sign. Raises SegmentsChanged if the latest version lacks some of the parts, or already has a sum
    of one of them. Raises StoreError if a row block is missing, or the store cannot be written.
    """
    held = [reference_of(part) for part in parts]
    totals = sum_totals(store.folder, read_for(store.commit, parts, gone), writer.layout)
    segments = [segment for part in parts for segment in segments_in(part)]
    ledger = read_ledger(store.folder, segments, store.ledger())
    digest, written = writer.seal_beside(totals, ledger, files)
    of = tuple(one.id for one in held)
    made = SegmentSum(writer.id, digest, of, held[0].sign, whole)

    def change(head: Commit) -> Commit:
        kept = _kept(head.sums, gone)
        there = {_key(reference_of(part)) for part in covered(head.segments, without_whole(kept))}
        if not {_key(one) for one in held} <= there:
            raise SegmentsChanged(
                f"version {head.version} lacks some of the {len(held)} summed segments, or already "
                "has a sum of them, as another writer was faster; run compact again"
            )
        if whole:
            read = [reference_of(part) for part in covered(head.segments, kept)]
            others = {one.id for one in read if (one.words, one.sign) != _era(parts[0])}
            kept = tuple(one for one in kept if not one.whole or one.id in others)
        message = f"compact: stored the sum of {len(held)} segments"
        return head.successor("compact", message, sums=(*kept, made))

    return store.extended(change, [written])


def _kept(sums: Sequence[SegmentSum], gone: frozenset[str]) -> tuple[SegmentSum, ...]:
    return tuple(one for one in sums if one.id not in gone)


def _days_gone_by(commit: Commit, sums: Sequence[SegmentSum], by: Bucket) -> list[Part]:
    """Return the parts of a version, except the segments of its latest day, month or year.

    If all segments are of the same day, month or year, none is left out.
    """
    latest = _latest(commit.segments, by)
    several = len({_bucket(part, by) for part in commit.segments}) > 1
    left = (latest, latest) if several and latest is not None else ()
    parts = covered(commit.segments, sums)
    return [part for part in parts if _bucket(reference_of(part), by) != left]


def _era(part: Part) -> tuple[int | None, int]:
    own = reference_of(part)
    return own.words, own.sign


def _weight(part: SegmentReference) -> int:
    return part.documents + part.shards


def _key(part: SegmentReference) -> tuple[str, int]:
    return part.id, part.sign


def _bucket(part: SegmentReference, by: Bucket) -> _Days:
    return None if part.dates is None or by == "all" else part.dates.bucket(by)


def _latest(references: Sequence[SegmentReference], by: Bucket) -> date | None:
    buckets = [_bucket(part, by) for part in references]
    return max((bucket[1] for bucket in buckets if bucket is not None), default=None)


def _first_day(part: Part) -> date:
    days = reference_of(part).dates
    return date.min if days is None else days.first

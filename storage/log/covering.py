"""Covering: selects the stored sums to read in place of the segments of a version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TypeAlias

from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.commits import Commit, SegmentReference, SegmentSum


@dataclass(frozen=True)
class Summed:
    """A stored sum of segments, which is read in place of these segments, its parts.

    If the sum is missing or damaged, the parts are read.

    `reference` has the totals of all parts, and their days if all parts have days.
    """

    reference: SegmentReference
    of: tuple[Part, ...]

    @classmethod
    def made_of(cls, one: SegmentSum, parts: tuple[Part, ...]) -> Summed:
        """Make the record of a stored sum from its reference and its parts."""
        return cls(summed_reference(one.id, one.manifest, parts), parts)


Part: TypeAlias = SegmentReference | Summed


def reference_of(part: Part) -> SegmentReference:
    """Return the reference of a part, which is a segment or a stored sum of segments."""
    return part.reference if isinstance(part, Summed) else part


def segments_in(part: Part) -> tuple[SegmentReference, ...]:
    """Return the segments of a part: itself, or all segments in a sum and its nested sums."""
    if not isinstance(part, Summed):
        return (part,)
    return tuple(segment for one in part.of for segment in segments_in(one))


def added(part: Part) -> Part:
    """Return a part with its sign set to 1."""
    if isinstance(part, Summed):
        return Summed(replace(part.reference, sign=1), tuple(added(one) for one in part.of))
    return replace(part, sign=1)


def summed_reference(identity: str, manifest: str, parts: tuple[Part, ...]) -> SegmentReference:
    """Return the reference of a sum of parts, which must all have the same sign and vocabulary."""
    held = [reference_of(part) for part in parts]
    return SegmentReference(
        identity,
        manifest,
        documents=sum(one.documents for one in held),
        tokens=sum(one.tokens for one in held),
        shards=sum(one.shards for one in held),
        largest=sum(one.largest for one in held),
        sign=held[0].sign,
        dates=days_of(held),
        words=held[0].words,
    )


def days_of(references: Iterable[SegmentReference]) -> DateRange | None:
    """Return the range of days of some segments; None if a segment has no days."""
    days = [one.dates for one in references]
    known = [one for one in days if one is not None]
    return reduce(or_, known) if known and len(known) == len(days) else None


def covered(segments: Iterable[SegmentReference], sums: Iterable[SegmentSum]) -> tuple[Part, ...]:
    """Replace segments by their sums where possible, so that each segment is read once.

    Examples
    --------
    >>> parts = [SegmentReference(one * 32, "0" * 64, 1, 2, 1, 3) for one in "abc"]
    >>> found = covered(parts, [SegmentSum("d" * 32, "0" * 64, ("a" * 32, "b" * 32))])
    >>> [(reference_of(part).id[0], reference_of(part).documents) for part in found]
    [('c', 1), ('d', 2)]
    >>> covered(parts[1:], [SegmentSum("d" * 32, "0" * 64, ("a" * 32, "b" * 32))])[0].id[0]
    'b'
    """
    parts: dict[tuple[str, int], Part] = {}
    again = list[Part]()
    for segment in segments:
        key = (segment.id, segment.sign)
        # put aside a segment that is subtracted a second time, as a sum can contain it only once
        if key in parts:
            again.append(segment)
        else:
            parts[key] = segment
    for one in sums:
        held = [(part, one.sign) for part in one.of]
        if not held or len({*held}) < len(held) or any(part not in parts for part in held):
            continue  # some segments of this sum are missing, or are covered by another sum
        of = tuple(parts[part] for part in held)
        if len({reference_of(part).words for part in of}) == 1:
            for part in held:
                del parts[part]
            parts[one.id, one.sign] = Summed.made_of(one, of)
    return (*parts.values(), *again)


def sums_among(
    segments: Iterable[SegmentReference], sums: Iterable[SegmentSum]
) -> tuple[Summed, ...]:
    """Return all sums of some segments, including sums that are parts of other sums."""
    segments, sums = tuple(segments), tuple(sums)
    found: dict[tuple[str, int], Summed] = {}
    # search again without sums of all days, as they hide other sums of the same segments
    waiting = [*covered(segments, sums), *covered(segments, without_whole(sums))]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Summed):
            found[part.reference.id, part.reference.sign] = part
            waiting += part.of
    return tuple(found.values())


def without_whole(sums: Iterable[SegmentSum]) -> tuple[SegmentSum, ...]:
    """Return the sums, without those that are `whole`: sums of all days except the latest."""
    return tuple(one for one in sums if not one.whole)


def parts_of(commit: Commit) -> tuple[Part, ...]:
    """Return the segments and sums to read for a version."""
    return covered(commit.segments, commit.sums)

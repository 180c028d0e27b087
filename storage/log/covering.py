"""Covering: what is read of a version, sums in place of the segments that they are sums of."""

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
    """A sum that is read in place of its parts; these are read where it is gone or damaged.

    `reference` is of the numbers of all of them, and of their days where all have some.
    """

    reference: SegmentReference
    of: tuple[Part, ...]

    @classmethod
    def made_of(cls, one: SegmentSum, parts: tuple[Part, ...]) -> Summed:
        """A sum with its parts."""
        return cls(summed_reference(one.id, one.manifest, parts), parts)


Part: TypeAlias = SegmentReference | Summed


def reference_of(part: Part) -> SegmentReference:
    """What is read first of a part."""
    return part.reference if isinstance(part, Summed) else part


def segments_in(part: Part) -> tuple[SegmentReference, ...]:
    """The segments that a part is the sum of, through all sums within it; or itself."""
    if not isinstance(part, Summed):
        return (part,)
    return tuple(segment for one in part.of for segment in segments_in(one))


def added(part: Part) -> Part:
    """A part with the numbers that it holds, whether they are added or subtracted."""
    if isinstance(part, Summed):
        return Summed(replace(part.reference, sign=1), tuple(added(one) for one in part.of))
    return replace(part, sign=1)


def summed_reference(identity: str, manifest: str, parts: tuple[Part, ...]) -> SegmentReference:
    """How a sum of parts of one sign and one vocabulary is read."""
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
    """Days of some segments together; None unless all have some."""
    days = [one.dates for one in references]
    known = [one for one in days if one is not None]
    return reduce(or_, known) if known and len(known) == len(days) else None


def covered(segments: Iterable[SegmentReference], sums: Iterable[SegmentSum]) -> tuple[Part, ...]:
    """Segments, in place of some of them their sums, so that each is held once.

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
        if key in parts:  # taken away twice, of which a sum holds one
            again.append(segment)
        else:
            parts[key] = segment
    for one in sums:
        held = [(part, one.sign) for part in one.of]
        if not held or len({*held}) < len(held) or any(part not in parts for part in held):
            continue  # of other segments, or another sum holds one of them
        of = tuple(parts[part] for part in held)
        if len({reference_of(part).words for part in of}) == 1:
            for part in held:
                del parts[part]
            parts[one.id, one.sign] = Summed.made_of(one, of)
    return (*parts.values(), *again)


def sums_among(
    segments: Iterable[SegmentReference], sums: Iterable[SegmentSum]
) -> tuple[Summed, ...]:
    """All sums that are of some segments, those included that are parts of others."""
    found: list[Summed] = []
    waiting = list(covered(segments, sums))
    while waiting:
        part = waiting.pop()
        if isinstance(part, Summed):
            found.append(part)
            waiting += part.of
    return tuple(found)


def parts_of(commit: Commit) -> tuple[Part, ...]:
    """What is read of a version."""
    return covered(commit.segments, commit.sums)

"""Commits: what a commit says of the state of a store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from streaming_moments.errors import StoreError
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.schema import (
    Count,
    Days,
    Digest,
    Extensible,
    Identity,
    Label,
    Name,
)

READING = "reading"  # of the form of a lineage: how shards of a kind other than counts are read


@dataclass(frozen=True)
class Era(Extensible):
    """A vocabulary that held until a commit added words to it.

    words : its number of words n; later words count from that commit on
    vocabulary, basis : fingerprints
    version, time : of that commit; time as ISO 8601 in UTC
    unknown : keys of later versions, preserved
    """

    words: Annotated[Count, Field(ge=1)]
    vocabulary: Digest
    basis: Digest
    version: Count
    time: str
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lineage(Extensible):
    """What all statistics of a version were gathered with.

    Parameters
    ----------
    vocabulary, basis : str
        Fingerprints; of a kind other than counts the foundation's, and no vocabulary.
    row_blocks : int
        Number of row blocks B.
    codocuments : bool
        Whether co-document counts are gathered.
    form : mapping
        JSON of the shard format.
    dates : mapping, optional
        JSON of where the dates of documents are.
    pilot : mapping, optional
        JSON of how vocabulary and basis were made.
    eras : tuple of Era
        Earlier, smaller vocabularies of the same core and matrix, the oldest first.
    kind : str, optional
        Of the statistics; None, as in stores of before there were others: counts.
    halves : bool
        Whether pair counts of half of the documents are gathered apart.
    halves_by_content : bool
        Whether halves, of any kind, follow from what records hold; else from their places.
    unknown : mapping
        Keys of later versions, preserved.
    """

    vocabulary: Digest | Literal[""]
    basis: Digest
    row_blocks: Annotated[Count, Field(ge=1)]
    codocuments: StrictBool
    form: Mapping[str, Any]
    dates: Mapping[str, str | None] | None = None
    pilot: Mapping[str, Any] | None = None
    eras: tuple[Era, ...] = ()
    kind: str | None = None
    halves: StrictBool = False
    halves_by_content: StrictBool = False
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def era(self, words: int) -> Era:
        """The era whose vocabulary had so many words.

        Raises
        ------
        StoreError
            There is none.
        """
        for one in self.eras:
            if one.words == words:
                return one
        raise StoreError(
            f"the lineage has no vocabulary of {words} words, it had "
            f"{', '.join(str(one.words) for one in self.eras) or 'none'} before; read the segments "
            "of a version with that version's lineage"
        )


def foundation_of(lineage: Lineage) -> tuple[object, ...]:
    """What a lineage says of the foundation of its statistics."""
    return lineage.kind, lineage.basis, lineage.halves, lineage.halves_by_content


@dataclass(frozen=True)
class SegmentReference(Extensible):
    """A segment of a version.

    Parameters
    ----------
    id : str
        32 hexadecimal digits.
    manifest : str
        SHA-256 of its manifest.
    documents, tokens, shards : int
        What was counted in it.
    largest : int
        No entry of its arrays is of larger magnitude.
    sign : int
        1 if its statistics are added, -1 if they are subtracted.
    dates : DateRange, optional
        Days of its documents, where they are known.
    words : int, optional
        Words of the era it was counted in; None: all words of the lineage.
    unknown : mapping
        Keys of later versions, preserved.
    """

    id: Identity
    manifest: Digest
    documents: Count
    tokens: Count
    shards: Count
    largest: Count
    sign: StrictInt = 1
    dates: Days | None = None
    words: Count | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SegmentSum(Extensible):
    """A segment that is read in place of those that it is the sum of, which stay.

    Its ledger has the records of each of these. A version is the same with and without it: of one
    that is gone, damaged or lacks a ledger, what it is the sum of is read.

    id : 32 hexadecimal digits
    manifest : SHA-256 of its manifest
    of : segments, and sums named before it, by identifier
    sign : that of all of them
    unknown : keys of later versions, preserved
    """

    id: Identity
    manifest: Digest
    of: tuple[Identity, ...]
    sign: StrictInt = 1
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Staging(Extensible):
    """A lineage gathered aside, with its segments; not in the state until a commit adopts it.

    `unknown` preserves keys of later versions.
    """

    always: ClassVar[frozenset[str]] = frozenset({"segments"})
    lineage: Lineage
    segments: tuple[SegmentReference, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelReference(Extensible):
    """A model of a version.

    id : 32 hexadecimal digits
    manifest : SHA-256 of its manifest
    version : the version whose statistics it was fitted on
    labels : names that people gave its topics, by number
    unknown : keys of later versions, preserved
    """

    id: Identity
    manifest: Digest
    version: Count
    labels: Mapping[Annotated[int, Field(ge=0)], Label] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit(Extensible):
    """One version of a store.

    Parameters
    ----------
    version : int
        0, 1, 2, ...
    parent : str
        Transaction of the version before, empty for version 0.
    transaction : str
        32 hexadecimal digits by which a writer knows its own commit again.
    time : str
        When it was made by the writer's clock, ISO 8601 in UTC.
    operation : str
        "create", "append", "model", ...
    message : str
        The user's.
    lineage : Lineage
        What the statistics were gathered with.
    segments : tuple of SegmentReference
        Their sum, each with its sign, is the state.
    models : mapping
        Models by name, the latest last.
    tags : mapping
        Name of the model that each tag stands for.
    skipped : tuple of (str, str)
        URLs of shards that this commit left out, each with the reason.
    staged : Staging, optional
        A lineage that is to take the place of this one.
    fence : int
        Of the latest lock under which one was committed up to here; 0 without any.
    expired : tuple of (int, int)
        First and last of each range of versions before it that are no longer kept, in order.
    forgotten : Forgotten
        What must not be counted again.
    sums : tuple of SegmentSum
        Sums of its segments. Those of segments that it has no longer, which writers of before
        there were any leave in it, are as if they were not there: see `live_sums`.
    unknown : mapping
        Keys of later versions, preserved.
    """

    always: ClassVar[frozenset[str]] = frozenset({"segments", "models", "skipped"})
    version: Count
    parent: str
    transaction: Identity
    time: str
    operation: str
    message: str
    lineage: Lineage
    segments: tuple[SegmentReference, ...] = ()
    models: Mapping[Name, ModelReference] = field(default_factory=dict)
    tags: Mapping[Name, Name] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()
    staged: Staging | None = None
    fence: Count = 0
    expired: tuple[tuple[Count, Count], ...] = ()
    forgotten: Forgotten = field(default_factory=Forgotten)
    sums: tuple[SegmentSum, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def first(cls, lineage: Lineage, message: str) -> Commit:
        """Version 0: no segments."""
        return cls(0, "", uuid.uuid4().hex, _now(), "create", message, lineage)

    def successor(self, operation: str, message: str, **changes: Any) -> Commit:
        """The next version; fields that are not changed stay, but for the skipped shards.

        Sums of segments that it has no longer go.
        """
        news: dict[str, Any] = {"skipped": (), **changes}
        after = replace(
            self,
            version=self.version + 1,
            parent=self.transaction,
            transaction=uuid.uuid4().hex,
            time=_now(),
            operation=operation,
            message=message,
            **news,
        )
        return replace(after, sums=after.live_sums) if after.sums else after

    @property
    def live_sums(self) -> tuple[SegmentSum, ...]:
        """The sums whose segments are all of this version, and of one vocabulary."""
        words = {(part.id, part.sign): part.words for part in self.segments}
        live = []
        for one in self.sums:
            held = [(part, one.sign) for part in one.of]
            if held and all(part in words for part in held):
                eras = {words[part] for part in held}
                if len(eras) == 1:
                    words[one.id, one.sign] = eras.pop()
                    live.append(one)
        return tuple(live)

    def keeps(self, version: int) -> bool:
        """Whether it is the version given, or one before it that was not expired."""
        gone = any(first <= version <= last for first, last in self.expired)
        return 0 <= version <= self.version and not gone

    @property
    def kept(self) -> tuple[tuple[int, int], ...]:
        """First and last of each range of versions that are kept up to this one."""
        ends = [-1, *(last for _, last in self.expired)]
        begins = [*(first for first, _ in self.expired), self.version + 1]
        ranges = zip(ends, begins, strict=True)
        return tuple((end + 1, begin - 1) for end, begin in ranges if end + 1 < begin)

    def without(self, versions: Iterable[int]) -> tuple[tuple[int, int], ...]:
        """What `expired` is once versions before it are no longer kept either."""
        known = {one for first, last in self.expired for one in range(first, last + 1)}
        gone = sorted({*versions, *known})
        if not gone:
            return ()
        firsts = [one for one, before in zip(gone, [-2, *gone], strict=False) if one != before + 1]
        lasts = [one for one, after in zip(gone, [*gone[1:], -2], strict=True) if after != one + 1]
        return tuple(zip(firsts, lasts, strict=True))

    @property
    def documents(self) -> int:
        """Documents counted."""
        return sum(segment.sign * segment.documents for segment in self.segments)

    @property
    def tokens(self) -> int:
        """Vocabulary tokens counted."""
        return sum(segment.sign * segment.tokens for segment in self.segments)

    @property
    def shards(self) -> int:
        """Shards counted."""
        return sum(segment.sign * segment.shards for segment in self.segments)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

"""Commits: each describes one version of a store."""

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
    Path,
)

# A key of the dict `form` of a lineage. For kinds other than counts, its value describes how shards
# are read.
READING = "reading"


@dataclass(frozen=True)
class Era(Extensible):
    """A vocabulary that was in use until a commit added words to it.

    words : number of words n of this vocabulary; the added words are counted from that commit on
    vocabulary, basis : fingerprints of this vocabulary and its basis
    version, time : version of that commit, and its time as ISO 8601 in UTC
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
    """Definition of the statistics of a version.

    vocabulary, basis : fingerprints of the vocabulary and basis. For kinds other than counts,
        `basis` is the fingerprint of the foundation, and `vocabulary` is empty.
    row_blocks : number of row blocks B
    codocuments : whether co-document counts are stored
    form : JSON of the shard format
    dates : JSON that says where the dates of documents are found
    pilot : JSON that says how the vocabulary and basis were made
    eras : earlier, smaller vocabularies of the same core and basis matrix, the oldest first
    kind : kind of the statistics; None, also in old stores, means counts
    halves : whether the pair counts of half of the documents are stored separately
    halves_by_content : whether a record's content decides to which half it belongs; otherwise its
        place does
    like : whether the store was created on the foundation of another store, so that both can be
        merged
    unknown : keys of later versions, preserved
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
    like: StrictBool = False
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def era(self, words: int) -> Era:
        """Return the era during which the vocabulary had `words` words.

        Raises StoreError if no era had this number of words.
        """
        for one in self.eras:
            if one.words == words:
                return one
        raise StoreError(
            f"the lineage has no vocabulary of {words} words (earlier sizes: "
            f"{', '.join(str(one.words) for one in self.eras) or 'none'}); read the segments "
            "of a version with that version's lineage"
        )


def foundation_of(lineage: Lineage) -> tuple[object, ...]:
    """Return what identifies the foundation of a lineage: its kind, its basis, and its halves."""
    return lineage.kind, lineage.basis, lineage.halves, lineage.halves_by_content


@dataclass(frozen=True)
class SegmentReference(Extensible):
    """A segment of a version, which holds the statistics of some shards.

    id : 32 hexadecimal digits
    manifest : SHA-256 of its manifest
    documents, tokens, shards : numbers of counted documents, tokens and shards
    largest : upper bound of the magnitude of all entries of its arrays
    sign : 1 if its statistics are added, -1 if they are subtracted
    dates : days of its documents, if they have dates
    words : vocabulary size of the era in which it was counted; None means all words of the lineage
    origin : name of the origin that its documents came from. If that store has them from an origin
        of its own, "/" and the name of that origin follow. None if this store counted them
    unknown : keys of later versions, preserved
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
    origin: Path | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def is_of(self, origin: str) -> bool:
        """Whether the documents came from an origin, which may have pulled them from elsewhere."""
        return self.origin is not None and self.origin.partition("/")[0] == origin


@dataclass(frozen=True)
class Origin(Extensible):
    """Another store whose documents a version holds, too.

    id : transaction of its first commit, which no other store has
    url : URL at which it was read
    version, time : its version that was pulled, and the time of that commit, ISO 8601 in UTC
    purged : SHA-256 of the list of shards that were purged in that store; empty without any
    within : identifiers of the stores whose documents that store holds in turn, sorted
    transaction : transaction of the pulled commit, which distinguishes the store from a copy that
        has diverged; empty in stores of earlier writers
    unknown : keys of later versions, preserved
    """

    id: Identity
    url: str
    version: Count
    time: str
    purged: Digest | Literal[""] = ""
    within: tuple[Identity, ...] = ()
    transaction: Identity | Literal[""] = ""
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SegmentSum(Extensible):
    """Stored sum of some segments, which is read in their place.

    Its ledger has the records of its segments, which remain in the store. If the sum is missing or
    damaged, or lacks a ledger, the segments are read instead, with the same result.

    id : 32 hexadecimal digits
    manifest : SHA-256 of its manifest
    of : identifiers of its segments, and of earlier sums that are parts of it
    sign : the sign of all these segments and sums
    whole : whether it is the sum of all days except the latest day; the next such sum will replace
        this one
    unknown : keys of later versions, preserved
    """

    id: Identity
    manifest: Digest
    of: tuple[Identity, ...]
    sign: StrictInt = 1
    whole: StrictBool = False
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Staging(Extensible):
    """A new lineage with its segments, which takes effect when a commit adopts it.

    `unknown` preserves keys of later versions.
    """

    always: ClassVar[frozenset[str]] = frozenset({"segments"})
    lineage: Lineage
    segments: tuple[SegmentReference, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSource(Extensible):
    """Another store from which a model was copied.

    id : transaction of its first commit, which no other store has
    url : URL at which it was read
    name : name of the model in that store
    version : the version of that store to whose statistics it was fitted
    unknown : keys of later versions, preserved
    """

    id: Identity
    url: str
    name: Name
    version: Count
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelReference(Extensible):
    """A model, as a version of the store refers to it.

    id : 32 hexadecimal digits
    manifest : SHA-256 of its manifest
    version : the version to whose statistics it was fitted; for a copied model, the latest version
        at the time of the copy
    labels : names that users gave its topics, by number
    source : the store that fitted it; None if it is this one
    unknown : keys of later versions, preserved
    """

    id: Identity
    manifest: Digest
    version: Count
    labels: Mapping[Annotated[int, Field(ge=0)], Label] = field(default_factory=dict)
    source: ModelSource | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit(Extensible):
    """One version of a store.

    version : 0, 1, 2, ..
    parent : transaction of the previous version; empty for version 0
    transaction : 32 hexadecimal digits by which a writer recognises its own commit
    time : time of the commit by the writer's clock, ISO 8601 in UTC
    operation : "create", "append", "model", ..
    message : the user's message
    lineage : definition of the statistics
    segments : segments whose signed sum is the state
    models : models by name, the latest last
    tags : for each tag, the name of its model
    skipped : URLs of shards that this commit skipped, each with the reason
    staged : a lineage that will replace this one
    fence : highest fence of the locks under which this and earlier versions were committed; 0 if
        there was no lock
    expired : first and last of each range of expired versions, in order
    forgotten : shards that must not be counted again
    sums : sums of its segments. Old writers also leave sums of removed segments here, which
        `live_sums` ignores.
    origins : other stores whose documents it holds, by name
    unknown : keys of later versions, preserved
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
    origins: Mapping[Name, Origin] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def first(cls, lineage: Lineage, message: str) -> Commit:
        """Make version 0, without segments."""
        return cls(0, "", uuid.uuid4().hex, _now(), "create", message, lineage)

    def successor(self, operation: str, message: str, **changes: Any) -> Commit:
        """Make the next version. Unchanged fields stay, except `skipped`.

        Sums of removed segments are dropped.
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
        """Sums whose segments are all in this version, and all have the same vocabulary."""
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
        """Whether `version` is this version, or an earlier one that has not expired."""
        gone = any(first <= version <= last for first, last in self.expired)
        return 0 <= version <= self.version and not gone

    @property
    def kept(self) -> tuple[tuple[int, int], ...]:
        """First and last version of each range of versions that have not expired."""
        ends = [-1, *(last for _, last in self.expired)]
        begins = [*(first for first, _ in self.expired), self.version + 1]
        ranges = zip(ends, begins, strict=True)
        return tuple((end + 1, begin - 1) for end, begin in ranges if end + 1 < begin)

    def without(self, versions: Iterable[int]) -> tuple[tuple[int, int], ...]:
        """Return the ranges of expired versions that result when some more versions expire."""
        known = {one for first, last in self.expired for one in range(first, last + 1)}
        gone = sorted({*versions, *known})
        if not gone:
            return ()
        firsts = [one for one, before in zip(gone, [-2, *gone], strict=False) if one != before + 1]
        lasts = [one for one, after in zip(gone, [*gone[1:], -2], strict=True) if after != one + 1]
        return tuple(zip(firsts, lasts, strict=True))

    @property
    def documents(self) -> int:
        """Number of counted documents."""
        return sum(segment.sign * segment.documents for segment in self.segments)

    @property
    def tokens(self) -> int:
        """Number of counted tokens; tokens outside the vocabulary are not counted."""
        return sum(segment.sign * segment.tokens for segment in self.segments)

    @property
    def shards(self) -> int:
        """Number of counted shards."""
        return sum(segment.sign * segment.shards for segment in self.segments)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

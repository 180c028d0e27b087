"""Changes: the segments that the next commit adds and subtracts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from streaming_moments.errors import (
    ForeignStatistics,
    InvalidInput,
    StoreError,
    SumExceeded,
    short,
)
from streaming_moments.statistics.counts.lengths.room import LARGEST_TOTAL
from streaming_moments.storage.files.parts import whole_of
from streaming_moments.storage.log.commits import Commit, Lineage, SegmentReference
from streaming_moments.storage.log.forgotten import Forgotten, ForgottenShard, ShardsForgotten
from streaming_moments.storage.log.ledger import (
    CopiesCounted,
    Ledger,
    ShardRecord,
    ShardsAlreadyCounted,
    Urls,
)
from streaming_moments.storage.log.uncommitted import Uncommitted
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import PARTITIONS

_SHOWN = 5


@dataclass(frozen=True)
class Recount:
    """Segments that one commit adds, subtracts and drops.

    operation : "append", "forget" or "replace"
    added, removed : segments to add, and segments to subtract, with at least one shard each
    dropped : segments of the latest version to leave out, as found by `segments_of`
    skipped : URL of each skipped shard, and the reason
    unique : whether to refuse shards whose content is counted under other names
    lists : whether to list removed shards as forgotten, so that they are not counted again
    again : whether forgotten or purged shards may be counted again
    allowed : names of forgotten or purged shards that may be counted again
    """

    operation: str
    message: str
    added: tuple[Segment, ...] = ()
    removed: tuple[Segment, ...] = ()
    dropped: tuple[SegmentReference, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    unique: bool = False
    lists: bool = False
    again: bool = False
    allowed: tuple[str, ...] = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments to subtract, with sign -1, and then segments to add."""
        taken = (replace(part, reference=replace(part.reference, sign=-1)) for part in self.removed)
        return (*taken, *self.added)

    @property
    def references(self) -> tuple[SegmentReference, ...]:
        """References of all segments to subtract and to add."""
        return tuple(part.reference for part in self.segments)

    def under(self, lineage: Lineage) -> Recount:
        """Return the same changes for versions of `lineage`; raise the errors of `placed`."""
        return replace(
            self,
            added=tuple(placed(lineage, part) for part in self.added),
            removed=tuple(placed(lineage, part) for part in self.removed),
        )

    @property
    def written(self) -> tuple[Uncommitted, ...]:
        """Files that were written for the segments to add or subtract."""
        return tuple(part.written for part in self.segments)


def recounted(head: Commit, recount: Recount, ledger: Ledger) -> Commit:
    """Make the commit that adds and removes segments.

    Does not check for negative counts. Raises these errors:

    ForeignStatistics : a segment was counted with another basis
    ShardsAlreadyCounted : added shards are counted already, and the commit does not remove them
    InvalidInput : a removed shard is not counted, or was counted with other content. Or the ledger
        has a folder that contains an added shard, or a shard within an added folder.
    CopiesCounted : with `unique`, the content of an added shard is counted under another name
    ShardsForgotten : added shards were forgotten or purged
    StoreError : the version lacks a segment to drop
    SumExceeded : sums could reach 2^62
    """
    recount = recount.under(head.lineage)
    kept = kept_segments(head, recount)
    taken = [record for segment in recount.removed for record in segment.shards]
    taken += [record for part in recount.dropped for record in ledger.records(part.id)]
    for record in taken:
        require_counted(ledger, record)
    require_own(head, ledger, [record.url for record in taken])
    _require_eras(head, recount.removed, ledger)
    away = {record.url for record in taken}
    added = [record for segment in recount.added for record in segment.shards]
    urls = [record.url for record in added]
    if len(away) < len(taken) or len(set(urls)) < len(urls):
        raise InvalidInput("a shard is given twice in one commit; give each shard once")
    already = tuple(url for url in ledger.counted(urls) if url not in away)
    if already:
        raise ShardsAlreadyCounted(already)
    require_apart(ledger, urls, away)
    copies = ledger.copies(added, away) if recount.unique else ()
    if copies:
        raise CopiesCounted(copies)
    forgotten = head.forgotten.without([*recount.allowed, *(urls if recount.again else ())])
    if not recount.again:
        require_not_forgotten(forgotten, added)
    if recount.lists:
        forgotten = forgotten.with_forgotten(
            ForgottenShard(one.url, one.fingerprint, one.size) for one in taken
        )
    segments = (*kept, *recount.references)
    require_bound(segments)
    return head.successor(
        recount.operation,
        recount.message,
        segments=segments,
        skipped=recount.skipped,
        forgotten=forgotten,
    )


def require_not_forgotten(forgotten: Forgotten, records: Iterable[ShardRecord]) -> None:
    """Raise ShardsForgotten for shards that were forgotten, or purged."""
    if not forgotten:
        return
    told = ((one.url, forgotten.reason(one.url, (one.fingerprint, one.size))) for one in records)
    reasons = tuple((url, reason) for url, reason in told if reason is not None)
    if reasons:
        raise ShardsForgotten(reasons)


def kept_segments(head: Commit, recount: Recount) -> tuple[SegmentReference, ...]:
    """Return the segments of a commit except those that `recount` drops.

    Raises StoreError if the commit lacks one of the dropped segments.
    """
    dropped = {part.id for part in recount.dropped}
    kept = tuple(part for part in head.segments if part.sign < 0 or part.id not in dropped)
    if len(kept) + len(dropped) != len(head.segments):
        raise StoreError(
            f"version {head.version} lacks some of the {len(dropped)} segments that hold only "
            "the old content of the shards: another writer has compacted or rolled back the store",
            "give copies of the old content by {update.old}",
        )
    return kept


def segments_of(
    head: Commit, ledger: Ledger, records: Iterable[ShardRecord]
) -> tuple[SegmentReference, ...]:
    """Find segments of a version all of whose shards are in `records`.

    No two of these segments share a shard.

    To drop such a segment from the version subtracts its shards, without reading them. Shards that
    another segment of the version subtracts are ignored.
    """
    negative = (part for part in head.segments if part.sign < 0)
    subtracted = {record.url for part in negative for record in ledger.records(part.id)}
    wanted = {record for record in records if record.url not in subtracted}
    found = []
    for part in head.segments:
        # compare the numbers of shards first, so that the records of a large segment need not be
        # read
        if part.sign > 0 and part.shards <= len(wanted):
            held = set(ledger.records(part.id))
            if held and held <= wanted:
                found.append(part)
                wanted -= held
    return tuple(found)


def require_known(ledger: Ledger, urls: Sequence[str]) -> None:
    """Raise InvalidInput for URLs that are not in the ledger. Does not read their shards."""
    counted = set(ledger.counted(urls))
    for url in urls:
        if url not in counted:
            raise InvalidInput(_not_counted(url))


def require_own(head: Commit, ledger: Ledger, urls: Sequence[str]) -> None:
    """Raise InvalidInput if an origin counts one of the shards.

    Only the origin's own store can change these shards.
    """
    for name in head.origins:
        theirs = ledger.of_segments(part for part in head.segments if part.is_of(name))
        if found := theirs.counted(urls):
            raise InvalidInput(
                f"{found[0]} is counted by origin {name}",
                "remove or replace it in that store, under its name in that store, then run "
                "{merge} again, or remove all of the origin by {forget.origin}",
            )


def require_apart(ledger: Ledger, urls: Urls, away: Set[str] = frozenset()) -> None:
    """Raise InvalidInput for shards in a counted folder, or folders that hold a counted shard.

    Counted shards in `away` are ignored, because the same commit removes them.
    """
    found = [(url, other) for url, other in ledger.overlaps(urls) if other not in away]
    if found:
        lines = "; ".join(
            f"{url} {_beside(url, other)} {other}, which is counted"
            for url, other in found[:_SHOWN]
        )
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InvalidInput(
            f"{lines}{more}: the documents in both would be counted twice",
            "leave out the new shard, or first remove the counted one by {forget.allow_again}",
        )


def _beside(url: str, other: str) -> str:
    if whole_of(url) == whole_of(other):
        return "is the same file as"
    return "lies within" if other.endswith("/") and url.startswith(other) else "holds"


def require_counted(ledger: Ledger, record: ShardRecord) -> None:
    """Raise InvalidInput if a shard to remove differs from its record in the ledger."""
    counted = ledger.find(record.url)
    if counted is None:
        raise InvalidInput(_not_counted(record.url))
    if counted.fingerprint != record.fingerprint:
        raise InvalidInput(
            f"{record.url} was counted as {short(counted.fingerprint)} and is now "
            f"{short(record.fingerprint)}; only the counted content can be subtracted, so put the "
            "old content back"
        )
    if counted != record:
        raise InvalidInput(
            f"{record.url} was counted as {counted.documents} documents and {counted.tokens} "
            f"tokens, but has {record.documents} and {record.tokens} now; read it with the version "
            "of streaming-moments that counted it"
        )


def placed(lineage: Lineage, segment: Segment) -> Segment:
    """Return a segment as versions of a lineage refer to it.

    If the segment was counted with an earlier vocabulary of the lineage, its reference has the
    number of words of that vocabulary.

    Raises ForeignStatistics if the segment was counted with a basis that the lineage never had.
    """
    words = {lineage.basis: None, **{era.basis: era.words for era in lineage.eras}}
    if segment.basis not in words:
        raise ForeignStatistics(
            f"the segment has basis {short(segment.basis)}, and the store's latest version has "
            f"{short(lineage.basis)}; count the shards with the store's basis"
        )
    require_halves(segment, lineage)
    return replace(segment, reference=replace(segment.reference, words=words[segment.basis]))


def require_halves(segment: Segment, lineage: Lineage) -> None:
    """Raise ForeignStatistics if a segment splits documents into halves otherwise than its store.

    This can happen if the store was rebased after the segment was counted.
    """
    if segment.halves != lineage.halves:
        raise ForeignStatistics(
            f"the segment was counted with{'' if segment.halves else 'out'} separate sums of one "
            "half of the documents, but after a rebase the store has "
            f"{'' if lineage.halves else 'no '}such sums; run this again"
        )
    if segment.halves_by_content != lineage.halves_by_content:
        raise ForeignStatistics(
            "the segment splits the records into halves by "
            f"{'content' if segment.halves_by_content else 'place'}, but a rebase has changed how "
            "the store splits them; run this again"
        )


def _require_eras(head: Commit, removed: Iterable[Segment], ledger: Ledger) -> None:
    """Refuse to subtract shards that were counted with a vocabulary of another number of words."""
    if not head.lineage.eras:
        return
    for segment in removed:
        words = segment.reference.words
        same = [part for part in head.segments if part.words == words]
        there = set(ledger.of_segments(same).counted([record.url for record in segment.shards]))
        for record in segment.shards:
            if record.url not in there:
                raise InvalidInput(
                    f"{record.url} cannot be subtracted with the vocabulary of "
                    f"{'all' if words is None else words} words, because it was counted with "
                    "another vocabulary; run this again on the latest version"
                )


def require_bound(segments: Iterable[SegmentReference]) -> None:
    """Raise SumExceeded if sums of the segments could reach 2^62."""
    # Bound the sums of added and of subtracted segments separately: while segments are summed, a
    # partial sum may contain all segments of one sign and none of the other.
    sides: Counter[int] = Counter()
    for segment in segments:
        sides[segment.sign] += segment.largest
    bound = max(sides.values(), default=0)
    if bound >= LARGEST_TOTAL:
        raise SumExceeded(
            f"a sum of the statistics may reach {bound:.3g}, above 2^62",
            "run {compact}, forget the longest documents, or create a store that cuts documents "
            "into passages by {create.passage_words}",
        )


def _not_counted(url: str) -> str:
    how = "the documents and the source" if url.startswith(PARTITIONS) else "shards by the URLs"
    return f"{url} is not counted, so it cannot be subtracted; give {how} that were counted"

"""Merge: add the counts of other stores, record each as an origin, and read no documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.merging.counted_once import ShardsRefused
from streaming_moments.storage.merging.pulling import Pull, change_text, pull_together
from streaming_moments.storage.store.store import MomentStore

Refused: TypeAlias = InvalidInput | ForeignStatistics


@dataclass(frozen=True)
class MergeResult:
    """Result of a merge: the store at its latest version, and what was pulled from each origin."""

    store: MomentStore
    pulls: tuple[Pull, ...]


def merge(
    store: MomentStore,
    others: Sequence[str],
    run: Run,
    name: str | None = None,
    unique: bool = False,
    least_documents: int = 0,
    message: str = "",
    compact_after: int = COMPACT_AFTER,
    include_forgotten: bool = False,
) -> MergeResult:
    """Add the statistics of other stores on the same foundation.

    Each other store that has changed is added in a commit of its own. But if shards have moved
    between several stores in both directions, one commit adds these stores. The sum is bit for bit
    that of one store that counted all shards of these stores. Documents are not read. A later call
    adds only later changes, and can also continue an interrupted call.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    others : sequence of str
        URLs of the other stores, which are only read.
    run : Run
        Cluster for merging segments, and options.
    name, unique, least_documents, message, include_forgotten
        As in `storage.merging.pull`; `name` can be given only for a single other store.
    compact_after : int
        As in `compact_when_many`. Compaction keeps the segments of origins beside their sums.

    Raises
    ------
    ForeignStatistics, InvalidInput
        As in `storage.merging.pull`. Stores without such an error are merged nevertheless.
    StoreError
        As in `storage.merging.pull`. The stores before the failed one are merged.
    """
    if name is not None and len(others) != 1:
        raise InvalidInput(
            f"one name was given for {len(others)} stores, but each origin has its own name",
            "merge them one by one, each with {merge.as}",
        )
    pulls = list[Pull]()

    def take(hub: MomentStore, urls: Sequence[str]) -> tuple[Pull, ...]:
        options = run.storage_options
        opened = [MomentStore.open(url, storage_options=options, whole=False) for url in urls]
        found = pull_together(
            hub, opened, unique, least_documents, message, include_forgotten, name
        )
        pulls.extend(found)
        for one in found:
            run.tell(pull_line(one))
            copied = of_number(one.added, "segment")
            run.detail(f"{one.name}: {copied} copied, {one.removed:,} dropped")
        return found

    store = in_turn(store, others, take)
    last = {one.name: one for one in pulls}
    told = [one if last[one.name] is one else replace(one, left_out=()) for one in pulls]
    return MergeResult(compact_when_many(store, compact_after, run), tuple(told))


def in_turn(
    store: MomentStore,
    others: Sequence[str],
    take: Callable[[MomentStore, Sequence[str]], Sequence[Pull]],
) -> MomentStore:
    """Merge the other stores by `take`, in an order that allows for shards moved between stores.

    If `take` refuses a store, or leaves out some of its shards, the store is tried again after the
    others. If it refuses all remaining stores, shards may have moved in both directions, so `take`
    gets several stores in one call. Raises the first error if this fails, too.
    """
    waiting = list(dict.fromkeys(others))
    while waiting:
        refused, partial = dict[str, Refused](), dict[str, int]()
        for url in waiting:
            try:
                found = take(store, [url])
            except (InvalidInput, ForeignStatistics) as error:
                refused[url] = error
            else:
                store = found[-1].store if found else store.latest()
                if any(one.left_out for one in found):
                    partial[url] = store.version
        if len(refused) == len(waiting):
            store, together = _at_once(store, refused, take)
            if not together:
                raise refused[waiting[0]]
            refused = {url: error for url, error in refused.items() if url not in together}
        again = [url for url, version in partial.items() if version != store.version]
        waiting = [*refused, *again]
    return store


def _at_once(
    store: MomentStore,
    refused: Mapping[str, Refused],
    take: Callable[[MomentStore, Sequence[str]], Sequence[Pull]],
) -> tuple[MomentStore, Sequence[str]]:
    """Merge as many of the refused stores as possible by one call of `take`; return their URLs.

    Each shard must count only once in all of these stores together.
    """
    left = [url for url, error in refused.items() if isinstance(error, ShardsRefused)]
    known = {origin.url for origin in store.commit.origins.values()}
    while len(left) > 1:
        try:
            found = take(store, left)
        except ShardsRefused as error:
            # Drop a store whose shards would count twice. If one of the stores is a known origin
            # and another is new, drop the new one.
            twice = [url for url in left if Folder.at(url).url in error.stores]
            new = [url for url in twice if Folder.at(url).url not in known]
            left.remove((new or twice)[-1])
        except (InvalidInput, ForeignStatistics):
            break
        else:
            return (found[-1].store if found else store.latest()), left
    return store, ()


def pull_line(found: Pull) -> str:
    """Describe for people, in one line, what was pulled from an origin.

    Examples
    --------
    >>> from streaming_moments.storage.log.commits import Origin
    >>> origin = Origin("0" * 32, "s3://berlin/store", 7, "2026-11-26T00:00:00+00:00")
    >>> pull_line(Pull(None, "berlin", origin, 1200, 200, added=1))
    'berlin at version 7: 200 documents more, 1,200 in all'
    >>> pull_line(Pull(None, "berlin", origin, 1200))
    'berlin at version 7: nothing has changed, 1,200 documents'
    """
    told = f"{found.name} at version {found.origin.version}:"
    number = of_number(found.documents, "document")
    if not found.added and not found.removed and not found.change and not found.left_out:
        return f"{told} nothing has changed, {number}"
    parts = list[str]()
    if found.left_out:
        parts.append(f"{of_number(len(found.left_out), 'shard')} left out")
    if found.purged:
        parts.append(f"{of_number(len(found.purged), 'shard')} purged")
    if found.withdrawn:
        parts.append(f"{of_number(found.withdrawn, 'origin')} purged")
    return "; ".join([f"{told} {change_text(found.change)}, {found.documents:,} in all", *parts])


def pull_as_json(found: Pull) -> dict[str, object]:
    """Return a pull as a dictionary for JSON."""
    return {
        "origin": found.name,
        "url": found.origin.url,
        "origin_version": found.origin.version,
        "time": found.origin.time,
        "documents": found.documents,
        "change": found.change,
        "segments_copied": found.added,
        "segments_dropped": found.removed,
        "left_out": list(found.left_out),
        "purged": len(found.purged),
        "origins_purged": found.withdrawn,
    }

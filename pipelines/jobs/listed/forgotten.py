"""Find forgotten shards: for an update, which skips them, and for `forget --allow-again`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import looked_at
from streaming_moments.printing.remedies import remedy
from streaming_moments.storage.files.patterns import names_among
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.forgotten import Forgotten, said_of_forgotten
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import PARTITIONS, Shard, fingerprint
from streaming_moments.storage.store.store import MomentStore

Reasons = tuple[tuple[str, str], ...]  # names of shards, each with the reason for skipping it


def without_forgotten(
    forgotten: Forgotten, new: ShardTable, run: Run
) -> tuple[ShardTable, Reasons]:
    """Return the new shards that are neither forgotten nor purged, and why the others are skipped.

    If the storage has no mark of the content of a shard, the shard is read if a forgotten shard has
    the same size. The commit refuses the remaining cases: shards forgotten meanwhile, and shards
    recorded only by a hash.
    `forgotten` is the list of the latest version.
    """
    if not forgotten:
        return new, ()
    urls, sizes = new.urls.to_pylist(), new.sizes.tolist()
    marks: list[str | None] = new.marks.to_pylist()
    unread = [
        place
        for place, (url, mark, size) in enumerate(zip(urls, marks, sizes, strict=True))
        if mark is None and size in forgotten.sizes and not url.startswith(PARTITIONS)
    ]
    asked = new.take(np.array(unread, dtype=np.int64))
    found = looked_at(_mark, asked, int(asked.sizes.sum()), run)
    for place, mark in zip(unread, found, strict=True):
        marks[place] = mark
    told = [
        forgotten.reason(url, None if mark is None else (mark, size))
        for url, mark, size in zip(urls, marks, sizes, strict=True)
    ]
    kept = np.flatnonzero([reason is None for reason in told])
    reasons = [(url, reason) for url, reason in zip(urls, told, strict=True) if reason is not None]
    return new.take(kept), tuple(reasons)


def tell_forgotten(reasons: Reasons, run: Run) -> None:
    """Report which shards were skipped, and how to count them."""
    if reasons:
        what, them = ("shard was", "it") if len(reasons) == 1 else ("shards were", "them")
        text = "{number} forgotten {what} skipped: {why}; {update.include_forgotten} counts {them}"
        why = said_of_forgotten(reasons)
        run.tell(remedy(text, number=len(reasons), what=what, why=why, them=them))


def counted_or_forgotten(
    store: MomentStore, urls: Sequence[str], storage_options: Mapping[str, object] | None
) -> list[Shard]:
    """Return the shards that URLs and patterns name.

    Forgotten shards are included even if their files no longer exist.

    Errors as in `list_shards`.
    """
    ledger, forgotten = store.ledger(), store.commit.forgotten
    names, files = set[str](), list[str]()
    for url in urls:
        found = names_among(url, set(forgotten.names), storage_options)
        listed = {name for name in found if forgotten.reason(name) is not None}
        names |= listed
        files += [] if listed and not any(sign in url for sign in "*?[") else [url]
    shards = {name: Shard(name, 0) for name in names}
    if files:
        there = list_shards(
            files,
            storage_options,
            store.form.kind,
            missing=(lambda error: None) if names else None,
            counted=lambda url: ledger.find(url) is not None,
            apart=lambda folder: ledger.find(folder) is None,
        )
        shards |= {shard.url: shard for shard in there}
    return list(shards.values())


def _mark(shard: Shard, storage_options: Mapping[str, object] | None = None) -> str | None:
    """Return the fingerprint of a shard; None if it is unreadable, which counting will report."""
    try:
        return fingerprint(shard, storage_options)
    except ShardError:
        return None

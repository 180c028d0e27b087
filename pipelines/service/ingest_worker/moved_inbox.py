"""After an inbox has moved to another place, rename its counted shards in the store."""

from __future__ import annotations

from itertools import islice

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import fingerprints
from streaming_moments.pipelines.jobs.rename import rename
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.parts import SEALED_NAME
from streaming_moments.storage.inbox.seals import SEALED, are_of_other_batches
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

_LOOKED_AT = 5  # to recognise a former place of the inbox, compare at most this many shards


def rename_sealed(store: MomentStore, inbox: Folder, run: Run) -> tuple[MomentStore, list[str]]:
    """Rename shards that were counted before the inbox moved; return the former places.

    The store names a counted shard by its URL, which starts with the place of the inbox. To find
    out whether a place in these names is a former place of this inbox, take the latest shards there
    that also exist in this inbox. They must still have the content that was counted, and their
    seals must not show that they come from other batches. Raises what `rename` raises.
    """
    moved = []
    for place in _places(store, inbox):
        if _is_same(store, place, inbox, run):
            store = rename(store, place, inbox.url, run, copies=True)
            moved.append(place)
    return store, moved


def _places(store: MomentStore, inbox: Folder) -> list[str]:
    """Return the places of inboxes in the names of counted shards, except the place of `inbox`."""
    own, between = inbox.shard(""), f"/{SEALED}/"
    sealed = (one.url for one in store.ledger() if one.url.endswith(SEALED_NAME))
    found = {url.rpartition(between)[0] for url in sealed if between in url}
    return sorted(found - {own.rstrip("/")})


def _is_same(store: MomentStore, place: str, inbox: Folder, run: Run) -> bool:
    ledger = store.ledger()
    paths = sorted(
        (url.removeprefix(f"{place}/") for url in ledger.under(f"{place}/")), reverse=True
    )
    # stop as soon as enough files exist, because an inbox may have many shards
    here = [*islice(filter(inbox.exists, paths), _LOOKED_AT)]
    if not here:
        return False
    listed = list_shards([inbox.shard(path) for path in here], run.storage_options)
    marks = dict(zip((one.url for one in listed), fingerprints(listed, run), strict=True))
    records = [(ledger.find(f"{place}/{path}"), marks.get(inbox.shard(path))) for path in here]
    if any(record is None or record.fingerprint != mark for record, mark in records):
        return False
    pairs = [(inbox.shard(path), f"{place}/{path}") for path in here]
    return not any(are_of_other_batches(pair, run.storage_options) for pair in pairs)

"""Purging: removes all traces of some shards from their inboxes, as the law may require.

Claims lose the hashes of their documents, so documents sent again with the same key are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.inbox.idempotency import Claim, claim_file
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.owners import FORMAT_FILE, Owner, owner_of
from streaming_moments.storage.inbox.rejected import LEFT_OUT, forget_left_out, left_out_file
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import (
    SEALED,
    Seal,
    place_of_shard,
    seal_file,
    seal_of_shard,
)


def purge_inboxes(
    names: Iterable[str],
    storage_options: Mapping[str, Any] | None = None,
    owner: Owner | None = None,
) -> tuple[str, ...]:
    """Purge documents of some shards from their inboxes, and return URLs of the deleted files.

    `names` are names in the ledger; names of shards outside of inboxes are ignored. Pending
    documents are sealed first, as they may be the same documents sent again. An inbox of a store
    other than `owner` is not changed. If a process dies during a purge, a second call finishes it.
    """
    erased = []
    for log, paths in _inboxes(names, storage_options):
        if _is_of_another(log, owner):
            continue
        while log.seal_next() is not None:
            pass
        folder = log.inbox.folder
        for path in paths:
            _forget_content(log, path)
            for name in Deletions(log).files_of(path):
                if folder.exists(name):
                    folder.delete([name])
                    erased.append(f"{folder.url}/{name}")
    return tuple(erased)


def inboxes_of_others(
    names: Iterable[str], owner: Owner, storage_options: Mapping[str, Any] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return which inboxes of some shards belong to other stores, each with its store's URL."""
    found = [
        (log.inbox.folder.url, owner_of(log.inbox.folder))
        for log, _ in _inboxes(names, storage_options)
    ]
    return tuple((url, one.url) for url, one in found if one is not None and one != owner)


def require_no_deletion(
    names: Iterable[str],
    storage_options: Mapping[str, Any] | None = None,
    owner: Owner | None = None,
) -> None:
    """Refuse a purge (InvalidInput) while documents of the same inbox are being deleted.

    Inboxes of stores other than `owner` are skipped.
    """
    for log, _ in _inboxes(names, storage_options):
        if not _is_of_another(log, owner) and Deletions(log).waiting():
            raise InvalidInput(
                f"documents of {log.inbox.folder.url} are being deleted; run `streaming-moments "
                "accumulate --once`, then purge"
            )


def sealed_in_inboxes(
    names: Iterable[str], storage_options: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Select the shards that an inbox has sealed and still holds."""
    return tuple(
        f"{log.inbox.folder.url}/{path}"
        for log, paths in _inboxes(names, storage_options)
        for path in paths
        if (sealed := _seal_of(log, path)) is not None
        and any(shard.path == path for shard in sealed.shards)
    )


def left_in_inboxes(
    names: Iterable[str], storage_options: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the files in inboxes that still have traces of some shards, with the kind of trace."""
    for log, paths in _inboxes(names, storage_options):
        folder = log.inbox.folder
        for path in paths:
            for name in Deletions(log).files_of(path):
                if folder.exists(name):
                    yield f"{folder.url}/{name}", "holds or names documents"
            sealed = _seal_of(log, path)
            if sealed is None:
                continue
            if any(shard.path == path for shard in sealed.shards):
                yield f"{folder.url}/{seal_file(sealed.number)}", "holds the hash of documents"
            for receipt, _ in _claims(log, sealed, path):
                yield f"{folder.url}/{claim_file(receipt)}", "holds the hash of documents"
            noted = {f"{LEFT_OUT}/{name}" for name in folder.names(LEFT_OUT)}
            for name in sorted(noted & set(map(left_out_file, _receipts(sealed, path)))):
                yield f"{folder.url}/{name}", "names documents that were rejected with them"


def _inboxes(
    names: Iterable[str], storage_options: Mapping[str, Any] | None
) -> Iterator[tuple[SealLog, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        place = place_of_shard(name)
        if place is not None:
            inbox, path = place
            found[inbox].append(path)
    for url, paths in found.items():
        folder = Folder.at(url, storage_options)
        if folder.exists(FORMAT_FILE):
            yield SealLog(Inbox(folder)), paths


def _is_of_another(log: SealLog, owner: Owner | None) -> bool:
    found = None if owner is None else owner_of(log.inbox.folder)
    return found is not None and found != owner


def _seal_of(log: SealLog, path: str) -> Seal | None:
    number = seal_of_shard(path)
    there = log.inbox.folder.exists(seal_file(number))
    return log.read_anew(number) if there else None


def _receipts(sealed: Seal, path: str) -> list[str]:
    """Return the receipts with documents in a shard."""
    return [
        kept.receipt
        for batch in sealed.batches
        for kept in batch.kept
        if any(f"{SEALED}/{piece.day.isoformat()}/" in path for piece in kept.pieces)
    ]


def _claims(log: SealLog, sealed: Seal, path: str) -> Iterator[tuple[str, Claim]]:
    """Yield each receipt whose claim has the hash of documents of a shard, with its claim."""
    for receipt, claim in log.inbox.claims_of(_receipts(sealed, path)).items():
        if claim is not None and not claim.is_forgotten:
            yield receipt, claim


def _forget_content(log: SealLog, path: str) -> None:
    """Remove a shard from its seal, and its documents from claims and from notes of rejection."""
    sealed, folder = _seal_of(log, path), log.inbox.folder
    if sealed is None:
        return
    # change the seal first: a slow process that restores files then finds no such shard in the seal
    left = tuple(shard for shard in sealed.shards if shard.path != path)
    folder.write(seal_file(sealed.number), replace(sealed, shards=left).sealed())
    for receipt, claim in _claims(log, sealed, path):
        log.inbox.renew(receipt, claim.forgotten())
    forget_left_out(folder, _receipts(sealed, path))

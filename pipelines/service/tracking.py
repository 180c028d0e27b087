"""Tracking: what became of a receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.answers import Receipt
from streaming_moments.pipelines.service.counted import read_counted
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.inbox.batches import receipts_of_batch
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.inbox.inbox import BATCHES, Inbox
from streaming_moments.storage.inbox.receipts import seal_before
from streaming_moments.storage.inbox.sealing import Seal, SealLog
from streaming_moments.storage.store.store import MomentStore

_HEADER = 1 << 16  # bytes that a header hardly passes
_FAR = 1000  # seals behind the first that may have a receipt


@dataclass(frozen=True)
class Tracker:
    """Looks receipts up.

    Parameters
    ----------
    seals : SealLog
        Of the inbox.
    """

    seals: SealLog
    _headers: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def find(self, receipt: str, store: MomentStore) -> Receipt | None:
        """What became of a receipt; None where nothing is known of it.

        Parameters
        ----------
        receipt : str
            As it was answered.
        store : MomentStore
            At a version that is as late as what is told.

        Raises
        ------
        StoreError
            The inbox cannot be read.
        """
        inbox = self.seals.inbox
        after, digest = seal_before(receipt), ""
        if after is None:
            claim = inbox.claims_of([receipt])[receipt]
            if claim is None:
                return None
            after, digest = claim.after, claim.digest
        # a seal between the two looks takes what waited
        found = self._sealed(receipt, after, store) or self._waiting(receipt, digest)
        return found or self._sealed(receipt, after, store)

    def _sealed(self, receipt: str, after: int, store: MomentStore) -> Receipt | None:
        last = min(self.seals.latest(), after + _FAR)
        sealed = self.seals.find(receipt, after, last)
        if sealed is not None:
            if not Deletions(self.seals).left_of(receipt, sealed):
                return Receipt(receipt, "forgotten", sealed.documents_of(receipt))
            return receipt_of(receipt, sealed, store, self.seals.inbox)
        return None

    def _waiting(self, receipt: str, digest: str) -> Receipt | None:
        inbox = self.seals.inbox
        names = {batch.name for batch in inbox.pending()}
        for gone in self._headers.keys() - names:
            self._headers.pop(gone, None)
        new = sorted(names - self._headers.keys())
        places = [f"{BATCHES}/{name}" for name in new]
        begun = inbox.folder.find_all(places, [_HEADER] * len(new)) if new else []
        for name, place, content in zip(new, places, begun, strict=True):
            if content is not None:
                self._headers[name] = self._receipts(place, content)
        waits = any(
            known.get(receipt) is not None and digest in ("", known[receipt])
            for known in list(self._headers.values())
        )
        return Receipt(receipt, "accepted") if waits else None

    def _receipts(self, place: str, begun: bytes) -> Mapping[str, str]:
        """Receipts of a batch that begins so; one whose header is longer is read whole."""
        folder = self.seals.inbox.folder
        try:
            return receipts_of_batch(begun, f"{folder.url}/{place}")
        except StoreError:
            whole = folder.find(place) if len(begun) >= _HEADER else begun
            # gone: it was sealed meanwhile
            return {} if whole is None else receipts_of_batch(whole, f"{folder.url}/{place}")


def receipt_of(receipt: str, sealed: Seal, store: MomentStore, inbox: Inbox) -> Receipt:
    """What became of a receipt that is in a seal."""
    documents = sealed.documents_of(receipt)
    shards = sealed.shards_of(receipt)
    noted = read_counted(inbox, sealed.number)
    ledger = store.ledger()
    left_out = [noted.left_out[shard.path] for shard in shards if shard.path in noted.left_out]
    if left_out:
        return Receipt(receipt, "refused", documents, reason=left_out[0])
    names = [shard_name(f"{inbox.folder.url}/{shard.path}") for shard in shards]
    if noted.version is not None or all(ledger.find(name) is not None for name in names):
        version = store.version if noted.version is None else noted.version
        return Receipt(receipt, "counted", documents, version)
    return Receipt(receipt, "accepted", documents)

"""Tracking: find out whether the documents of a receipt are pending, counted or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.ingest_worker.counted import read_counted
from streaming_moments.pipelines.service.schemas import Receipt
from streaming_moments.storage.inbox.batches import receipts_of_batch
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.inbox.inbox import BATCHES, Inbox
from streaming_moments.storage.inbox.receipts import seal_before
from streaming_moments.storage.inbox.rejected import read_left_out
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import Seal, SealedShard, shard_file
from streaming_moments.storage.inbox.set_aside import find_set_aside
from streaming_moments.storage.store.store import MomentStore

# read this many bytes from the beginning of a batch to find its header, which is rarely longer
_HEADER = 1 << 16
_FAR = 1000  # search at most this many seals, beginning with the first that may have the receipt


@dataclass(frozen=True)
class Tracker:
    """Finds the state of receipts; `seals` is the log of seals of the inbox."""

    seals: SealLog
    _headers: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def find(self, receipt: str, store: MomentStore) -> Receipt | None:
        """Return the state of a receipt, or None if it is unknown.

        It is the state at the version of `store`, or at a later version.
        """
        # search twice: if the claim of the receipt is renewed during the first search, its number
        # of the first seal to search changes, and the first search looks in the wrong seals
        found = self._found(receipt, store) or self._found(receipt, store)
        if found is None:
            return None
        return replace(found, left_out=read_left_out(self.seals.inbox.folder, receipt))

    def _found(self, receipt: str, store: MomentStore) -> Receipt | None:
        inbox = self.seals.inbox
        after, digest = seal_before(receipt), ""
        if after is None:
            claim = inbox.claims_of([receipt])[receipt]
            if claim is None:
                return None
            after, digest = claim.after, claim.digest
        # Search the seals first: documents that were just sealed can still be in the folder of
        # pending documents, and must be reported as sealed.
        return self._sealed(receipt, after, store) or self._waiting(receipt, digest)

    def _sealed(self, receipt: str, after: int, store: MomentStore) -> Receipt | None:
        last = min(self.seals.latest(), after + _FAR)
        sealed = self.seals.find(receipt, after, last)
        if sealed is None:
            return None
        # read the seal from storage again, because a purge may have removed shards from it
        sealed = self.seals.read_anew(sealed.number)
        left = Deletions(self.seals).left_of(receipt, sealed)
        if left:
            return receipt_of(receipt, sealed, tuple(left), store, self.seals.inbox)
        # all documents of the receipt were deleted from the inbox, but this version may still count
        # them
        if self._counted_anyway(receipt, sealed, store):
            store = store.latest()  # the version that was given may be older than the deletion
            if self._counted_anyway(receipt, sealed, store):
                return Receipt(receipt, "counted", sealed.documents_of(receipt), store.version)
        return Receipt(receipt, "forgotten", sealed.documents_of(receipt))

    def _counted_anyway(self, receipt: str, sealed: Seal, store: MomentStore) -> bool:
        """Whether a version still counts documents of a receipt that no shard holds any more."""
        inbox, ledger = self.seals.inbox, store.ledger()
        for day in sealed.days_of(receipt):
            record = ledger.find(inbox.folder.shard(shard_file(sealed.number, day)))
            whole = next((shard.nbytes for shard in sealed.shards if shard.day == day), None)
            # the deleted documents are still counted if the size in the ledger is the one that the
            # shard had before anything was deleted from it
            if record is not None and (whole is None or record.size == whole):
                return True
        return False

    def _waiting(self, receipt: str, digest: str) -> Receipt | None:
        inbox = self.seals.inbox
        if self._is_in_header(receipt, digest):
            # the receipt is in a pending batch whose header was read earlier
            return Receipt(receipt, "accepted")
        names = {batch.name for batch in inbox.pending()}
        for gone in self._headers.keys() - names:
            self._headers.pop(gone, None)
        new = sorted(names - self._headers.keys())
        places = [f"{BATCHES}/{name}" for name in new]
        begun = inbox.folder.find_all(places, [_HEADER] * len(new)) if new else []
        for name, place, content in zip(new, places, begun, strict=True):
            if content is not None:
                self._headers[name] = self._receipts(place, content)
        return Receipt(receipt, "accepted") if self._is_in_header(receipt, digest) else None

    def _is_in_header(self, receipt: str, digest: str) -> bool:
        return any(
            known.get(receipt) is not None and digest in ("", known[receipt])
            for known in list(self._headers.values())
        )

    def _receipts(self, place: str, begun: bytes) -> Mapping[str, str]:
        """Return the receipts of a batch; `begun` are its first bytes.

        Reads the whole batch if its header is longer than these bytes.
        """
        folder = self.seals.inbox.folder
        try:
            return receipts_of_batch(begun, f"{folder.url}/{place}")
        except StoreError:
            whole = folder.find(place) if len(begun) >= _HEADER else begun
            # if the batch is missing, it was sealed meanwhile
            return {} if whole is None else receipts_of_batch(whole, f"{folder.url}/{place}")


def receipt_of(
    receipt: str, sealed: Seal, shards: Sequence[SealedShard], store: MomentStore, inbox: Inbox
) -> Receipt:
    """Return the state of a receipt whose documents are sealed; `shards` contain them.

    The ledger of `store` shows which documents this version counts. The note about the seal cannot
    show this, because the note describes an earlier version.
    """
    documents = sealed.documents_of(receipt)
    noted = read_counted(inbox, sealed.number)
    later, why = noted.version is not None and noted.version > store.version, None
    names = [inbox.folder.shard(shard.path) for shard in shards]
    held = not later and all(store.ledger().find(name) is not None for name in names)
    if not held:
        why = _why_set_aside(shards, inbox)
    if later and why is None:
        held = not any(shard.path in noted.left_out for shard in shards)
    if held:
        return Receipt(receipt, "counted", documents, noted.version or store.version)
    forgotten = store.commit.forgotten
    if forgotten and all(forgotten.reason(name) is not None for name in names):
        return Receipt(receipt, "forgotten", documents)
    if why is not None:
        return Receipt(receipt, "set_aside", documents, reason=why)
    left_out = [noted.left_out[shard.path] for shard in shards if shard.path in noted.left_out]
    if left_out:
        return Receipt(receipt, "refused", documents, reason=left_out[0])
    if noted.version is None:
        return Receipt(receipt, "accepted", documents)
    if noted.version == store.version:
        reason = (
            f"version {noted.version} counted the documents, but not under the name {names[0]}: "
            "the inbox or the store has moved; run `streaming-moments inbox assign`"
        )
    else:
        reason = (
            f"version {noted.version} counted the documents, but version {store.version} does not: "
            "the store was rolled back or forgot their shard; to count them, update the store "
            "with the sealed shards of the inbox"
        )
    return Receipt(receipt, "uncounted", documents, reason=reason)


def _why_set_aside(shards: Sequence[SealedShard], inbox: Inbox) -> str | None:
    notes = (find_set_aside(inbox.folder, shard.path) for shard in shards)
    return next((note.reason for note in notes if note is not None), None)

"""Deletions: remove documents from their shards, and subtract them exactly from the statistics.

After a rollback to a version before a deletion, the store counts the deleted documents again. Their
text no longer exists, so the statistics to subtract are copied from another version of the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.forget import forget_counted
from streaming_moments.pipelines.jobs.rebase import looked_for
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.deletions import Deletion, Deletions, cut_shards, read_gone
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.rejected import forget_left_out, forget_left_out_ids
from streaming_moments.storage.inbox.seals import SealedShard, seal_of_shard
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.log.schema import Count, checked
from streaming_moments.storage.operations.history import ROLLBACK
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

# File with the number of a version. All rollbacks up to this version have been checked, so none of
# them makes the store count a deleted document.
_HONOURED = "deletions-honoured.json"
_VERSIONS = 50  # the file with the checked version is written again after this many versions
_NUMBER: TypeAdapter[int] = TypeAdapter(Count)


@dataclass(frozen=True)
class Deleting:
    """Removes documents from shards and store, under the lock of the store.

    `store` opens the store at its latest version, writable under the lock.
    """

    deletions: Deletions
    store: Callable[[], MomentStore]
    run: Run

    @property
    def _inbox(self) -> Inbox:
        return self.deletions.seals.inbox

    def delete(self, identity: str, deletion: Deletion) -> int:
        """Carry out a requested deletion, and return how many documents it deleted.

        If an error interrupts the deletion, the next call does the rest.
        """
        if self.deletions.done(identity) is not None:
            self.deletions.withdraw(identity)
            return 0
        plan = self.deletions.plan(identity, deletion, self._beat("searching for ids"))
        text = f"forget: {of_number(plan.documents, 'document')} by request"
        version = None
        for one in plan.shards:
            store = self.store()
            name = self._inbox.folder.shard(one.path)
            old, new = self.deletions.set_aside(one)
            if store.ledger().find(name) is not None:
                copies = self._listed(old, store) if self._inbox.folder.exists(old) else []
                if new is None:
                    store = forget_counted(store, [name], self.run, text, copies)
                else:
                    store = self._replaced(store, one.path, copies)
            version = store.version
        if deletion.by == "receipt":
            forget_left_out(self._inbox.folder, deletion.names)
        else:
            forget_left_out_ids(self._inbox.folder, deletion.names)
        self.deletions.finish(identity, plan, version, self._beat("deleting old content"))
        return plan.documents

    def delete_again(self) -> int:
        """Delete documents that were deleted earlier, but that the latest version counts again.

        Returns the number of shards with such documents. Raises the error of the first shard that
        fails, after all others are done.
        """
        store, folder = self.store(), self._inbox.folder
        version = store.version
        # leave out shards of an unfinished deletion, which will replace these shards itself
        begun, ledger = self.deletions.begun(), store.ledger()
        paths = {folder.shard(path): path for path in cut_shards(folder) if path not in begun}
        records = [record for name in paths if (record := ledger.find(name)) is not None]
        there = looked_for(records, self.run)
        changed = [one.url for one, (shard, _) in zip(records, there, strict=True) if not shard]
        done, failed = 0, list[StreamingMomentsError]()
        for name in changed:
            try:
                done += self._delete_again(paths[name], name)
            except StreamingMomentsError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        note_honoured(self._inbox, version)
        return done

    def _delete_again(self, path: str, name: str) -> int:
        seals, folder = self.deletions.seals, self._inbox.folder
        shard = _shard_of(self.deletions, path)
        if shard is None:
            return 0  # the shard was purged
        gone, content = read_gone(folder, path), folder.find(path)
        if content is not None:
            if gone.left not in (None, hashlib.sha256(content).hexdigest()):
                raise StoreError(
                    f"{name} differs from the result of its deletions; restore it from a backup"
                )
            self._replaced(self.store(), path, [])
        elif len(gone.lines) < shard.documents:
            raise StoreError(
                f"seal {seal_of_shard(path)} of {seals.inbox.folder.url}: since a rollback, the "
                f"store counts deleted documents of {name} again, and the other documents of this "
                "shard have expired; remove the shard by `streaming-moments purge`, or roll back "
                "to a later version"
            )
        else:
            text = "forget: documents by request, after a rollback"
            forget_counted(self.store(), [name], self.run, text)
        return 1

    def _replaced(self, store: MomentStore, path: str, old: list[Shard]) -> MomentStore:
        new = self._listed(path, store)
        return update(store, new, self.run, old=old, others_again=True).store

    def _listed(self, path: str, store: MomentStore) -> list[Shard]:
        names = [self._inbox.folder.shard(path)]
        return list(list_shards(names, self.run.storage_options, store.form.kind))

    def _beat(self, step: str) -> Callable[[int, int], None]:
        return partial(self.run.progress.advance, step)


@dataclass
class Rollbacks:
    """Finds rollbacks that may have made the store count deleted documents again.

    A note in `inbox` has the last version that was checked.
    """

    inbox: Inbox
    _seen: MomentStore | None = None
    _noted: int | None = None

    def found(self, opened: Callable[[], MomentStore]) -> bool:
        """Return whether a rollback may have made the latest version count deleted documents.

        `opened` opens the store at its latest version.
        """
        seen = self._seen
        noted = read_honoured(self.inbox) if seen is None else self._noted
        if noted is None:
            return self._found_first(opened())
        if seen is None:
            store, first = opened(), noted
        elif seen.folder.exists(commit_file(seen.version + 1)):
            store, first = seen.latest(), seen.version
        else:
            return False
        self._noted = noted
        log = store.log(first + 1) if first < store.version else ()
        # return True also if versions are missing: they have expired, or the folder now holds
        # another store
        if len(log) != store.version - first or any(one.operation == ROLLBACK for one in log):
            return True
        self._seen = store
        if store.version >= noted + _VERSIONS:
            note_honoured(self.inbox, store.version)
            self._noted = store.version
        return False

    def _found_first(self, store: MomentStore) -> bool:
        """Do the same as `found` for an inbox without a note, as earlier releases left it."""
        if cut_shards(self.inbox.folder):
            return True
        note_honoured(self.inbox, store.version)
        return False

    def honoured(self) -> None:
        """Make the next call of `found` start at the version that `delete_again` has noted."""
        self._seen = None


def read_honoured(inbox: Inbox) -> int | None:
    """Return the version up to which rollbacks have been checked; None without a note."""
    data, where = inbox.folder.find(_HONOURED), f"{inbox.folder.url}/{_HONOURED}"
    if data is None:
        return None
    return checked(
        _NUMBER,
        unseal(data, where).get("version"),
        (f"{where} does not contain the number of a version"),
    )


def note_honoured(inbox: Inbox, version: int) -> None:
    """Write a note that rollbacks up to a version have been checked."""
    inbox.folder.write(_HONOURED, seal({"version": version}))


def _shard_of(deletions: Deletions, path: str) -> SealedShard | None:
    number = seal_of_shard(path)
    if number <= deletions.seals.expired():
        return None
    shards = deletions.seals.read_anew(number).shards
    return next((one for one in shards if one.path == path), None)

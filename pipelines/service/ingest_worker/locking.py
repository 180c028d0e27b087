"""Lock of the store: a process of a service changes the store only while it holds the lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.owners import Owner, require_owner
from streaming_moments.storage.log.format import read_format
from streaming_moments.storage.log.locks import Lock


@contextmanager
def locked(config: ServiceConfig, patience: timedelta = timedelta(0)) -> Iterator[Journal]:
    """Hold the lock of the store of a service, and renew it until the block ends.

    If another cycle or a nightly job holds the lock for longer than `patience`, raises LockHeld. If
    there is no store, raises StoreError and writes nothing, because the disk of the store may be
    missing.
    """
    folder = Folder.at(config.store, config.storage_options or None)
    read_format(folder)
    lock = Lock.acquire(folder, config.accumulate.lock_expiry, patience)
    journal = Journal(lock, lambda step: None)
    try:
        with journal.kept():
            yield journal
    finally:
        journal.lock.release()


@contextmanager
def inbox_locked(config: ServiceConfig) -> Iterator[Journal]:
    """Hold the lock as `locked` does, to change the inbox.

    Raises InboxOfAnother if the inbox belongs to another store now.

    This process must neither count nor delete documents of such an inbox.
    """
    options = config.storage_options or None
    with locked(config) as journal:
        require_owner(Folder.at(config.inbox_url, options), Owner.at(config.store, options))
        yield journal

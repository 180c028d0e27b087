"""Locking: the store's lock, under which one of a service's processes changes it at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.owners import Owner, require_owner
from streaming_moments.storage.log.locks import Lock


@contextmanager
def locked(config: ServiceConfig, patience: timedelta = timedelta(0)) -> Iterator[Journal]:
    """Hold the lock of a service's store, and keep it for as long as the context lasts.

    Parameters
    ----------
    config : ServiceConfig
        Names the store, and for how long the lock is held without a word.
    patience : timedelta
        For how long one that another holds is waited for.

    Raises
    ------
    LockHeld
        Another does, a turn or a night.
    StoreError
        The storage cannot be read or written.
    """
    folder = Folder.at(config.store, config.storage_options or None)
    lock = Lock.acquire(folder, config.accumulate.lock_expiry, patience)
    journal = Journal(lock, lambda step: None)
    try:
        with journal.kept():
            yield journal
    finally:
        journal.lock.release()


@contextmanager
def inbox_locked(config: ServiceConfig) -> Iterator[Journal]:
    """As `locked`, for whoever changes the inbox, which may have been assigned to another store.

    Raises
    ------
    InboxOfAnother
        It has: nothing of it may be counted, or deleted.
    """
    options = config.storage_options or None
    with locked(config) as journal:
        require_owner(Folder.at(config.inbox_url, options), Owner.at(config.store, options))
        yield journal

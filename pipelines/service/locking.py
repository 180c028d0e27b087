"""Locking: the store's lock, under which one of a service's processes changes it at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import Lock, LockHeld

_PAUSE = 0.1  # seconds between two looks at a lock that is held


@contextmanager
def locked(config: ServiceConfig, patience: float = 0.0) -> Iterator[Journal]:
    """Hold the lock of a service's store, and keep it for as long as the context lasts.

    Parameters
    ----------
    config : ServiceConfig
        Names the store, and for how long the lock is held without a word.
    patience : float
        Seconds to wait for one that holds it.

    Raises
    ------
    LockHeld
        Another does, a turn or a night.
    StoreError
        The storage cannot be read or written.
    """
    folder = Folder.at(config.store, config.storage_options or None)
    until = time.monotonic() + patience
    while True:
        try:
            lock = Lock.acquire(folder, config.accumulate.lock_expiry)
            break
        except LockHeld:
            if time.monotonic() >= until:
                raise
            time.sleep(_PAUSE)
    journal = Journal(lock, lambda step: None)
    try:
        with journal.kept():
            yield journal
    finally:
        journal.lock.release()

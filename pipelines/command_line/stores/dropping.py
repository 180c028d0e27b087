"""What all deleting commands share: the lock, the dry run, and the first keys of JSON output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import click

from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.store.store import MomentStore

_HOLDS = timedelta(minutes=5)  # expiry of the lock, which the command renews while it works


dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would be deleted, but change nothing."
)


@contextmanager
def under_lock(store: MomentStore) -> Iterator[MomentStore]:
    """Yield the store under its lock, so that no nightly job changes it meanwhile."""
    journal = Journal(Lock.acquire(store.folder, _HOLDS), lambda step: None)
    try:
        with journal.kept():
            yield journal.fenced(store.latest())
    finally:
        journal.lock.release()


def of_version(store: MomentStore, dry_run: bool) -> dict[str, Any]:
    return {"store": store.url, "version": store.version, "dry_run": dry_run}

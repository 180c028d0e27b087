"""Rename counted shards that have moved: write their segments again with the new names."""

from __future__ import annotations

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import summed
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.filesystems import open_file_system, url_of
from streaming_moments.storage.files.parts import whole_of
from streaming_moments.storage.files.urls import require_no_user, shard_name
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.operations.renaming import (
    Renaming,
    commit_renaming,
    renamed,
    segments_to_rename,
)
from streaming_moments.storage.store.store import MomentStore


def rename(store: MomentStore, old: str, new: str, run: Run, message: str = "") -> MomentStore:
    """Give counted shards that have moved their new names, so that no update counts them again.

    Reads no shard. The statistics stay the same, bit for bit. Segments with such shards are written
    again, each group of them in a commit of its own, so the same call continues after a crash.
    Earlier versions keep the old names.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    old, new : str
        Path or URL of a file, or of a folder, before and after the move.
    run : Run
        Cluster and options.
    message : str
        Message for the log; by default it has both names.

    Returns
    -------
    MomentStore
        Store at the new version.

    Raises
    ------
    InvalidInput
        No counted or forgotten shard has such a name, a new name is counted already, or an origin
        counted the shards.
    BoundExceeded
        A row block does not fit into the memory budget.
    StoreError
        The store cannot be read or written, or another writer compacted it meanwhile.
    """
    store = store.latest()
    renaming = _between(_name(old, run), _name(new, run), store.ledger())
    groups = segments_to_rename(store, renaming)
    for sources in groups:
        ledger = store.ledger().of_segments(sources)
        number = sum(renaming.concerns(one.url) for one in ledger)
        text = (
            message or f"rename: {of_number(number, 'shard')} of {renaming.old} to {renaming.new}"
        )
        segment = summed(store, sources, renamed(ledger, renaming), run)
        store = commit_renaming(store, sources, segment, renaming, text)
    if not groups:
        text = message or f"rename: forgotten shards of {renaming.old} to {renaming.new}"
        store = commit_renaming(store, (), None, renaming, text)
    return store


def _name(url: str, run: Run) -> str:
    """Name of a file or folder for the ledger, without a slash at its end."""
    require_no_user(url)
    fs, path = open_file_system(url, run.storage_options)
    return shard_name(url_of(fs, path)).rstrip("/")


def _between(old: str, new: str, ledger: Ledger) -> Renaming:
    """Rename a file if one of that name is counted, or else a folder."""
    is_file = any(whole_of(url) == old for url in ledger.under(old))
    return Renaming(old, new) if is_file else Renaming(f"{old}/", f"{new}/")

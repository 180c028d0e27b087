"""Rename counted shards whose files have moved: write their segments again with the new names."""

from __future__ import annotations

from collections.abc import Collection, Set

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import summed
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.filesystems import (
    each_file_under,
    open_file_system,
    shard_errors,
    url_of,
)
from streaming_moments.storage.files.parts import whole_of
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.operations.renaming import (
    Renaming,
    commit_renaming,
    names_after,
    renamed,
    segments_to_rename,
)
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 3


def rename(
    store: MomentStore,
    old: str,
    new: str,
    run: Run,
    message: str = "",
    copies: bool = False,
) -> MomentStore:
    """Rename counted shards whose files have moved, so that no update counts them again.

    A shard has moved if its file is at the new place and no longer at the old one. Other shards
    keep their names. Reads no shard. The segments with moved shards are written again, in one
    commit; their statistics stay the same, bit for bit. Earlier versions keep the old names.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    old, new : str
        Path or URL of a file, or of a folder, before and after the move.
    run : Run
        Cluster and options.
    message : str
        Message for the log; by default it contains both names.
    copies : bool
        Whether to rename also shards whose files are still at the old place.

    Returns
    -------
    MomentStore
        Store at the new version.

    Raises
    ------
    InvalidInput
        No counted or forgotten shard has an old name, no shard has moved, a new name is already
        the name of a counted shard, or the shards were counted by another store, an origin.
    ShardError
        A place cannot be listed.
    BoundExceeded
        A row block does not fit into the memory budget.
    StoreError
        The store cannot be read or written, or another writer compacted it meanwhile.
    """
    store = store.latest()
    listed = [one.url for one in store.ledger()]
    before, after = _name(old, run), _name(new, run)
    known = {*listed, *(one.url for one in store.commit.forgotten.shards)}
    is_file = any(whole_of(url) == before for url in known)
    if not is_file:
        before, after = f"{before}/", f"{after}/"
    names = names_after(known, before, after)
    if not names:
        examples = ", ".join(sorted(known)[:_SHOWN])
        raise InvalidInput(
            f"no counted shard is named {before}{'...' * (not is_file)}; "
            + (
                f"counted shards have names such as {examples}"
                if known
                else "the store counts no shard"
            )
        )
    there = _files(after, run)
    here = set[str]() if copies else _files(before, run)
    moved = {
        url: name for url, name in names.items() if _holds(there, name) and not _holds(here, url)
    }
    if not moved:
        raise _none_moved(names, before, after, here)
    renaming = Renaming(moved)
    written = []
    for sources in segments_to_rename(store, renaming):
        ledger = store.ledger().of_segments(sources)
        written.append((sources, summed(store, sources, renamed(ledger, renaming), run)))
    text = message or f"rename: {of_number(len(moved), 'shard')} of {before} to {after}"
    return commit_renaming(store, written, renaming, text)


def _name(url: str, run: Run) -> str:
    """Return the name of a file or folder as in the ledger, without a slash at its end."""
    fs, path = open_file_system(url, run.storage_options)
    return shard_name(url_of(fs, path)).rstrip("/")


def _files(place: str, run: Run) -> Set[str]:
    """Return the names of the files at a place: the file itself, or all files below a folder."""
    fs, path = open_file_system(place, run.storage_options)
    with shard_errors(place, run.storage_options):
        if not fs.exists(path):
            return set()
        if fs.isfile(path):
            return {place}
        return {shard_name(url_of(fs, one.path)) for one in each_file_under(fs, path, place)}


def _holds(files: Set[str], url: str) -> bool:
    """Whether `files` contain the file of a shard, also if the shard is only a part of the file."""
    if url.endswith("/"):
        return any(file.startswith(url) for file in files)
    return whole_of(url) in files


def _none_moved(names: Collection[str], old: str, new: str, here: Set[str]) -> InvalidInput:
    still = sum(_holds(here, url) for url in names)
    gone = len(names) - still
    where = [f"{still:,} {'is' if still == 1 else 'are'} still at {old}"] * bool(still)
    where += [f"{gone:,} {'is' if gone == 1 else 'are'} not at {new}"] * bool(gone)
    many = of_number(len(names), "counted shard")
    told = f"of {many}, {' and '.join(where)}; move the files first, and check both names"
    if not still:
        return InvalidInput(told)
    return InvalidInput(told, "{rename.copies} renames shards that were copied")

"""Expiry: deletes old versions, and the files that only they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.layout import COMMITS
from streaming_moments.storage.store.garbage import Garbage, held_alone, sweep
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Expiry:
    """Result of an expiry.

    models : models of the latest version that are deleted because the version they were fitted to
        is dropped
    held : old versions that stay, each with the model or tag that needs it
    places : folders of segments and models that no other version names
    size : size of these folders in bytes
    """

    versions: tuple[int, ...]
    models: tuple[str, ...]
    held: Mapping[int, str]
    places: tuple[str, ...] = ()
    size: int = 0


def plan_expiry(
    store: MomentStore, keep: int, older_than: timedelta, models: bool = False
) -> Expiry:
    """Return what `expire` would return, for the same arguments, or raise the same error."""
    log = store.latest().log()
    found = _expiry(log[0], keep, _long_past(store.folder, older_than), models)
    dropped = set(found.versions)
    gone = [commit for commit in log if commit.version in dropped]
    kept = [commit for commit in log if commit.version not in dropped]
    kept[0] = _without_models(kept[0], found.models)
    return _with_places(found, held_alone(store.folder, gone, kept))


def expire(
    store: MomentStore, keep: int, older_than: timedelta, models: bool = False, message: str = ""
) -> tuple[MomentStore, Expiry]:
    """Drop old versions in one commit, then delete the files that only they need.

    The last `keep` versions stay (at least 1). So do all versions that were the latest version at
    some time within the last `older_than`, by the clock of the storage. `older_than` must exceed
    the duration of any job, as a job on a dropped version fails. A version also stays if the latest
    model, or one with a tag, was fitted to it. With `models`, untagged models are dropped with the
    versions they were fitted to. A version number is never reused. If the process dies after the
    commit, the next call deletes the remaining files.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create
    >>> store = append(append(create(), {"a": 1}), {"b": 2})
    >>> store, dropped = expire(store, keep=1, older_than=timedelta(0))
    >>> dropped.versions, [commit.operation for commit in store.log()], len(store.ledger())
    ((0, 1), ['expire', 'append'], 2)
    """
    folder = store.folder
    past = _long_past(folder, older_than)
    store = store.latest()
    found = _expiry(store.commit, keep, past, models)

    def change(head: Commit) -> Commit:
        nonlocal found
        found = _expiry(head, keep, past, models)
        versions = of_number(len(found.versions), "version")
        dropped = f"expire: {versions}, {of_number(len(found.models), 'model')}"
        left = _without_models(head, found.models)
        return head.successor(
            "expire", message or dropped, expired=head.without(found.versions), models=left.models
        )

    if found.versions or found.models:
        store = store.extended(change)
    # also delete the files that an earlier call left if its process died
    heaps = sweep(folder)
    return store, _with_places(found, heaps)


def _expiry(head: Commit, keep: int, past: Iterable[int], models: bool) -> Expiry:
    """Select the versions and models to drop. `past` are versions old enough to drop."""
    if keep < 1:
        raise InvalidInput(f"cannot keep {keep} versions; give at least 1")
    last = [version for version in range(head.version + 1) if head.keeps(version)][-keep:]
    fitted = {head.models[model].version: f"tag {tag}" for tag, model in head.tags.items()}
    if head.models:
        latest = [*head.models][-1]
        fitted.setdefault(head.models[latest].version, f"model {latest}")
    old = [version for version in sorted(past) if head.keeps(version) and version not in last]
    gone = tuple(version for version in old if version not in fitted)
    held = {version: fitted[version] for version in old if version in fitted}
    tagged = {*head.tags.values(), *[*head.models][-1:]}
    dropped = [
        name
        for name, model in head.models.items()
        if name not in tagged and (model.version in gone or not head.keeps(model.version))
    ]
    return Expiry(gone, tuple(dropped) if models else (), held)


def _long_past(folder: Folder, older_than: timedelta) -> set[int]:
    """Return the versions superseded at least `older_than` ago, by the clock of the storage."""
    if older_than < timedelta(0):
        raise InvalidInput(f"the age of versions to drop is {older_than}; give at least 0")
    files = {file.path.removesuffix(".json"): file.modified for file in folder.files(COMMITS)}
    written = {int(name): time for name, time in files.items() if name.isdecimal()}
    now, past = folder.clock(), set[int]()
    successor: datetime | None = None
    for version in sorted(written, reverse=True):
        if successor is not None and now - successor >= older_than:
            past.add(version)
        # A version was superseded when the file of the next commit was written. Take the earliest
        # time of all later files: `expire` rewrites files of expired commits, so the file of the
        # next commit may be newer than those after it.
        successor = min(written[version], successor or written[version])
    return past


def _with_places(found: Expiry, heaps: Sequence[Garbage]) -> Expiry:
    places = tuple(heap.path for heap in heaps)
    return replace(found, places=places, size=sum(heap.size for heap in heaps))


def _without_models(commit: Commit, names: tuple[str, ...]) -> Commit:
    left = {name: model for name, model in commit.models.items() if name not in names}
    return replace(commit, models=left)

"""Model copies: copies a model from another store on the same foundation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.log.commits import Commit, ModelReference, ModelSource
from streaming_moments.storage.log.layout import model_folder
from streaming_moments.storage.log.manifests import MANIFEST, read_files
from streaming_moments.storage.log.uncommitted import Uncommitted
from streaming_moments.storage.merging.matching import followed, require_adding_up
from streaming_moments.storage.segments.models import model_called, model_files, read_model
from streaming_moments.storage.store.model_changes import TagMove, model_added
from streaming_moments.storage.store.store import MomentStore

PUBLISHED = "published"  # tag of the model that a nightly job publishes


@dataclass(frozen=True)
class PulledModel:
    """Result of copying a model from another store.

    Parameters
    ----------
    store : MomentStore
        The store that received the model, at its latest version.
    name : str
        Name of the model in this store.
    source : ModelSource
        The store that fitted the model.
    tag : str or None
        Tag that names the model in both stores, if any.
    is_new : bool
        Whether the model was copied now; False if this store already had it.
    """

    store: MomentStore = field(repr=False)
    name: str
    source: ModelSource
    tag: str | None
    is_new: bool


def pull_model(
    store: MomentStore,
    other: MomentStore,
    model: str | None = None,
    name: str | None = None,
    message: str = "",
) -> PulledModel:
    """Copy a model of another store on the same foundation, in one commit.

    The files are identical, and labels of topics are copied, too. If `model` is a tag, this tag of
    `store` also moves to the model. Words that the other store has added are first added to
    `store`. The commit names the store that fitted the model. A purge of `store` drops the model,
    because `store` does not know the documents to which it was fitted.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    other : MomentStore
        The store that fitted the model; it is only read.
    model : str, optional
        Name or tag in the other store; by default the tag "published", or the latest model if there
        is no such tag.
    name : str, optional
        Name of the model in `store`; by default the name in the other store.
    message : str
        Message for the log.

    Raises
    ------
    ForeignStatistics
        The foundations differ. The error describes the differences.
    InvalidInput
        The other store is this one, its model has other words than this store, or another model of
        this store has the name.
    StoreError
        There is no such model, or a store cannot be read or written.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create, model_of
    >>> hub = append(create("memory://hub-of-models"), {"a": 1}).save_model("k2", model_of(1))
    >>> found = pull_model(create(), hub)
    >>> found.name, found.source.url, found.source.version, found.is_new
    ('k2', 'memory://hub-of-models', 1, True)
    """
    store, other = store.writable().latest(), other.latest()
    source_id = Owner.at(other.url, other.folder.storage_options).birth
    if source_id == Owner.at(store.url, store.folder.storage_options).birth:
        raise InvalidInput(
            f"{other.url} is {store.url} itself, or a copy of it, and has its models already"
        )
    require_adding_up(store, other)
    asked = model or (PUBLISHED if PUBLISHED in other.commit.tags else None)
    there = model_called(other.commit, asked)
    reference = other.models[there]
    source = reference.source or ModelSource(source_id, other.url, there, reference.version)
    tag = asked if asked in other.commit.tags else None
    called = name or there
    known = store.models.get(called)
    if known is not None and known.manifest != reference.manifest:
        raise InvalidInput(
            f"{store.url} has another model named {called!r}", "give a new name by {pull-model.as}"
        )
    if known is not None and tag in (None, *_tags_of(store.commit, called)):
        return PulledModel(store, called, source, tag, is_new=False)
    text = message or f"pull-model: {called} is {source.name} of {source.url}"
    if known is not None:
        store = store.extended(lambda head: _tagged(head, tag or "", called, text))
        return PulledModel(store, called, source, tag, is_new=False)
    store = followed(store, other)
    version = _version_for(store, other, read_model(other.folder, there, reference), there)
    files, written = _copied(other, there, reference, store, called)
    copy = ModelReference(files, reference.manifest, version, reference.labels, source)

    def change(head: Commit) -> Commit:
        moved = None if tag is None else TagMove(tag, head.tags.get(tag))
        return model_added(head, called, copy, text, moved)

    return PulledModel(store.extended(change, [written]), called, source, tag, is_new=True)


def _tags_of(commit: Commit, model: str) -> list[str]:
    return [tag for tag, named in commit.tags.items() if named == model]


def _tagged(head: Commit, tag: str, model: str, text: str) -> Commit:
    if tag in head.models:
        raise InvalidInput(f"{tag!r} is the name of a model, so it cannot be a tag")
    return head.successor("tag", text, tags={**head.tags, tag: model})


def _version_for(store: MomentStore, other: MomentStore, model: Model, name: str) -> int:
    """Return the latest version of `store` that has the words of a model.

    Raises InvalidInput if there is no such version.
    """
    lineage = store.commit.lineage
    if model.vocabulary in ("", lineage.vocabulary):
        return store.version
    for era in lineage.eras:
        if era.vocabulary == model.vocabulary and store.commit.keeps(era.version - 1):
            return era.version - 1
    raise InvalidInput(
        f"model {name} of {other.url} was fitted with a vocabulary that no version of {store.url} "
        "has",
        f"fit a new model at {other.url} by {{refit}}, and pull that one",
    )


def _copied(
    other: MomentStore, there: str, reference: ModelReference, store: MomentStore, name: str
) -> tuple[str, Uncommitted]:
    """Copy the files of a model under a new identifier, and compare every file with its hash."""
    begun, identity = store.folder.clock(), uuid.uuid4().hex
    source, place = model_folder(there, reference.id), model_folder(name, identity)
    records = model_files(other.folder, there, reference)
    files: Mapping[str, bytes] = {
        **read_files(other.folder, source, records, records),
        MANIFEST: other.folder.read(f"{source}/{MANIFEST}"),
    }
    store.folder.write_all({f"{place}/{path}": data for path, data in files.items()})
    store.folder.sync(place)
    return identity, Uncommitted(place, {path: len(data) for path, data in files.items()}, begun)

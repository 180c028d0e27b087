"""What a user does with a store on a disk, and what the store holds."""

from dataclasses import dataclass
from datetime import timedelta

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.operations.purges.traces import traces_of
from streaming_moments.storage.store.garbage import collect, find_garbage, named_by, unswept
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    compact,
    create,
    forget,
    model_of,
    purge,
    rebase,
    replace,
    sum_beside,
)


@dataclass(frozen=True)
class Action:
    """One thing a user does; done again, it may be told `already` that it is done.

    `require` fails where it is not done to the end, by the URL of the store.
    """

    name: str
    act: callable
    already: tuple = ()
    require: callable = lambda url: None


def collect_garbage(url):
    folder = MomentStore.open(url).folder
    collect(folder, find_garbage(folder, timedelta(0)))


def appending(shards):
    return Action("append", lambda url: append(MomentStore.open(url), shards), (StoreError,))


def forgetting(shards):
    return Action("forget", lambda url: forget(MomentStore.open(url), shards), (InvalidInput,))


def replacing(old, new):
    return Action("replace", lambda url: replace(MomentStore.open(url), old, new), (InvalidInput,))


def saving(name, seed):
    return Action(
        "save_model",
        lambda url: MomentStore.open(url).save_model(name, model_of(seed)),
        (StoreError,),
    )


def tagging(name, model):
    return Action("tag", lambda url: tag(MomentStore.open(url), name, model))


def rolling_back(version):
    return Action("rollback", lambda url: rollback(MomentStore.open(url), version))


def growing(words):
    return Action("grow", lambda url: grow(MomentStore.open(url), words), (InvalidInput,))


def expiring(keep):
    return Action(
        "expire",
        lambda url: expire(MomentStore.open(url), keep, timedelta(0)),
        require=require_swept,
    )


def require_swept(url):
    """Fail where anything is left of versions that are no longer kept."""
    store = MomentStore.open(url)
    # a folder that is empty holds nothing
    places = {f"segments/{file.path.split('/')[0]}" for file in store.folder.files("segments")}
    assert places <= named_by(store.log())
    assert unswept(store.folder, store.commit) == []


def purging(shards):
    names = frozenset(shards)

    def require(url):
        require_swept(url)
        assert traces_of(MomentStore.open(url).folder, names) == ()

    return Action(
        "purge", lambda url: purge(MomentStore.open(url), names), (InvalidInput,), require
    )


def summing(store):
    """Write the sum of all segments beside them, if there is none."""
    return sum_beside(store, store.parts) if len(store.parts) > 1 else store


CREATE = Action("create", create, (StoreError,))
COMPACT = Action("compact", lambda url: compact(MomentStore.open(url)))
SUM = Action("sum beside", lambda url: summing(MomentStore.open(url)))
REBASE = Action("rebase", lambda url: rebase(MomentStore.open(url)))
GC = Action("gc", collect_garbage)


def state(store):
    """All that a user can ask of a version, to be compared bit for bit."""
    models = {name: store.load_model(name) for name in store.models}
    return (
        store.load(),
        set(store.ledger()),
        dict(store.commit.tags),
        {name: (m.topics.tobytes(), m.weights.tobytes()) for name, m in models.items()},
        store.commit.expired,
    )

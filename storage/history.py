"""History: going back to a version, naming models, and what changed between two versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput
from streaming_moments.matching import match_topics
from streaming_moments.storage.layout import require_name
from streaming_moments.storage.ledger import ShardRecord
from streaming_moments.storage.models import model_called
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.versions import Commit


@dataclass(frozen=True)
class MovedTopics:
    """How the topics of one model differ from those of another.

    Parameters
    ----------
    before, after : str
        Names of the models.
    pairs : tuple of (int, int, float)
        Topic before, topic after, and the total variation between them, 0 to 1; the topics are
        matched so that the sum is least.
    gone, new : tuple of int
        Topics before and after that have no partner, where one model has more topics.
    """

    before: str
    after: str
    pairs: tuple[tuple[int, int, float], ...]
    gone: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True)
class Difference:
    """What changed from one version to another.

    Parameters
    ----------
    before, after : int
        The versions.
    documents, tokens : int
        Gained; below zero where lost.
    added, removed : tuple of ShardRecord
        Shards counted in one of the versions only; a shard with new content is in both.
    moved : dict
        Topics of the models compared, by the name or tag they were called by.
    """

    before: int
    after: int
    documents: int
    tokens: int
    added: tuple[ShardRecord, ...]
    removed: tuple[ShardRecord, ...]
    moved: dict[str, MovedTopics]


def rollback(store: MomentStore, version: int, message: str = "") -> MomentStore:
    """Make the state what it was at a version, by a new commit; nothing is deleted.

    Segments, models and tags are those of the version. Shards counted since are no longer
    counted, so an update counts them again.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    version : int
        To go back to.
    message : str
        For the log; by default it names the version.

    Raises
    ------
    StoreError
        There is no such version, it is not whole, or the store cannot be written.
    """
    # the latest version need not be whole: this is the way back from it
    old = store.at(version).commit
    text = message or f"rollback to version {version}"

    def change(head: Commit) -> Commit:
        return head.successor(
            "rollback",
            text,
            lineage=old.lineage,
            segments=old.segments,
            models=old.models,
            tags=old.tags,
        )

    return store.extended(change)


def tag(store: MomentStore, name: str, model: str, message: str = "") -> MomentStore:
    """Let a tag stand for a model; it moves there in one commit.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    name : str
        The tag, such as "production".
    model : str
        Name of a model, or another tag that stands for it now.
    message : str
        For the log; by default it names both.

    Raises
    ------
    InvalidInput
        A tag with other characters than A-Z a-z 0-9 . _ -, or the name of a model.
    StoreError
        There is no such model, or the store cannot be written.
    """
    require_name(name)

    def change(head: Commit) -> Commit:
        chosen = model_called(head, model)
        if name in head.models:
            raise InvalidInput(f"{name!r} is the name of a model; take another name for the tag")
        text = message or f"tag {name}: {chosen}"
        return head.successor("tag", text, tags={**head.tags, name: chosen})

    return store.extended(change)


def difference(store: MomentStore, before: int, after: int, model: str | None = None) -> Difference:
    """What changed from one version to another.

    Parameters
    ----------
    store : MomentStore
        At any version.
    before, after : int
        Versions; the earlier need not be the first.
    model : str, optional
        Name or tag of the models to compare; by default every name and tag that both versions
        have and that stands for different models.

    Raises
    ------
    StoreError
        There is no such version or model, or a file is damaged.
    """
    latest = store.latest()
    one, two = latest.at(before), latest.at(after)
    old, new = set(one.ledger()), set(two.ledger())
    return Difference(
        before,
        after,
        two.commit.documents - one.commit.documents,
        two.commit.tokens - one.commit.tokens,
        _by_url(new - old),
        _by_url(old - new),
        {name: _moved(one, two, name) for name in _names_to_compare(one, two, model)},
    )


def _by_url(records: set[ShardRecord]) -> tuple[ShardRecord, ...]:
    return tuple(sorted(records, key=lambda record: record.url))


def _names_to_compare(one: MomentStore, two: MomentStore, model: str | None) -> Sequence[str]:
    if model is not None:
        return [model]
    names = [*one.commit.models, *one.commit.tags]
    both = [name for name in names if name in two.commit.models or name in two.commit.tags]
    return [name for name in both if _identity(one.commit, name) != _identity(two.commit, name)]


def _identity(commit: Commit, name: str) -> str:
    return commit.models[model_called(commit, name)].id


def _moved(one: MomentStore, two: MomentStore, name: str) -> MovedTopics:
    before, after = one.load_model(name), two.load_model(name)
    rows, columns, distances = match_topics(before.topics, after.topics)
    pairs = zip(rows.tolist(), columns.tolist(), distances.tolist(), strict=True)
    return MovedTopics(
        model_called(one.commit, name),
        model_called(two.commit, name),
        tuple(pairs),
        tuple(sorted(set(range(before.n_topics)) - set(rows.tolist()))),
        tuple(sorted(set(range(after.n_topics)) - set(columns.tolist()))),
    )

"""History: going back to a version, naming models, and what changed between two versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.registry import ABSENT
from streaming_moments.quality.matching import MatchingRule, TopicMatching
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.operations.lineages import states_compared
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

ROLLBACK = "rollback"  # the operation of such a commit
_ANY = MatchingRule(furthest=1.0)  # however far apart


@dataclass(frozen=True)
class MovedTopics:
    """How the topics of one model differ from those of another.

    pairs : (topic before, topic after, total variation from 0 to 1), matched for the least sum
    gone, new : topics before and after without a partner, where one model has more topics
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
    counted, so an update counts them again. Shards forgotten since are counted again if the version
    counts them, as `counted_again` says; all others stay forgotten, as do those that the version
    itself lists.

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
        There is no such version, it was expired, it is not whole, or the store cannot be written.
    """
    # the latest version need not be whole: this is the way back from it
    before = store.at(version)
    old = before.commit
    version = old.version

    def change(head: Commit) -> Commit:
        if not head.keeps(version):
            raise StoreError(
                f"version {version} was expired while this began; go back to one that is kept"
            )
        again = len(counted_again(head, before))
        more = f"; {again} forgotten shards are counted again" if again else ""
        return head.successor(
            ROLLBACK,
            message or f"rollback to version {version}{more}",
            lineage=old.lineage,
            segments=old.segments,
            sums=old.sums,
            models=old.models,
            tags=old.tags,
            forgotten=_not_counted(head.forgotten.joined(old.forgotten), before.ledger()),
        )

    return store.extended(change)


def counted_again(before: Commit, after: MomentStore) -> tuple[str, ...]:
    """Shards that one version lists as forgotten and another counts, by name.

    Examples
    --------
    >>> from streaming_moments.storage.store.changes import Recount
    >>> from streaming_moments.storage.operations.forgetting import commit_recount
    >>> from streaming_moments.testing.small_store import append, create, segment
    >>> store = append(create(), {"a": 1})
    >>> away = Recount("forget", "", removed=(segment(store, {"a": 1}),), lists=True)
    >>> forgotten = commit_recount(store, away)
    >>> counted_again(forgotten.commit, rollback(forgotten, 1))
    ('a',)
    """
    listed = [one.url for one in before.forgotten.shards]
    return tuple(sorted(set(after.ledger().counted(listed)))) if listed else ()


def _not_counted(forgotten: Forgotten, ledger: Ledger) -> Forgotten:
    if not forgotten.shards:
        return forgotten
    return forgotten.without(ledger.counted([one.url for one in forgotten.shards]))


def last_published(store: MomentStore, name: str) -> str:
    """Return the model that a tag stood for before the one it stands for now.

    If the tag went back to an earlier model, the models in between are skipped, so a second call
    leads further back. A tag that never stood for another model of the version raises a StoreError.
    """
    if name not in store.commit.tags:
        raise StoreError(
            f"version {store.version} has no tag {name!r}; it has "
            f"{', '.join(store.commit.tags) or 'none'}"
        )
    stood: list[str] = []
    for commit in reversed(store.log()):
        model = commit.tags.get(name)
        if model in stood:
            del stood[stood.index(model) + 1 :]
        elif model is not None:
            stood.append(model)
    there = [model for model in stood[:-1] if model in store.models]
    if not there:
        raise StoreError(
            f"the tag {name!r} stood for no model before {store.commit.tags[name]!r}; let it "
            "stand for another by `streaming-moments tag`"
        )
    return there[-1]


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
        Versions, of which -1 is the latest; the earlier need not be the first.
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
        one.version,
        two.version,
        two.commit.documents - one.commit.documents,
        two.commit.tokens - one.commit.tokens,
        _by_url(new - old),
        _by_url(old - new),
        _moved_in(one, two, model),
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


def _moved_in(one: MomentStore, two: MomentStore, asked: str | None) -> dict[str, MovedTopics]:
    """Of all that can be compared; what was asked for by name must be."""
    moved = {}
    for name in _names_to_compare(one, two, asked):
        before, after = one.load_any_model(name), two.load_any_model(name)
        found = states_compared((one, before), (two, after), _ANY)
        if found is not None:
            moved[name] = _moved(one, two, name, found)
        elif asked is not None:
            if why := ABSENT["diff"].get(after.name):
                raise StoreError(f"model {name} {why}")
            raise StoreError(
                f"the models called {name!r} have no topics or states over the same words, nor "
                "clusters of as many numbers, by which they could be compared; `streaming-moments "
                "topics --model` shows each"
            )
    return moved


def _moved(one: MomentStore, two: MomentStore, name: str, found: TopicMatching) -> MovedTopics:
    return MovedTopics(
        model_called(one.commit, name),
        model_called(two.commit, name),
        tuple((pair.before, pair.after, pair.distance) for pair in found.kept),
        tuple(lone.topic for lone in found.gone),
        tuple(lone.topic for lone in found.born),
    )

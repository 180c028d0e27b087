"""History: rolls a store back, tags models, and compares versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.registry import ABSENT
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.matching import MatchingRule, TopicMatching
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.covering import without_whole
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.operations.lineages import states_compared
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

ROLLBACK = "rollback"  # name of the operation of a rollback in the log
_ANY = MatchingRule(furthest=1.0)  # matching rule that accepts topics at any distance


@dataclass(frozen=True)
class MovedTopics:
    """Differences between the topics of two models.

    pairs : (topic before, topic after, total variation from 0 to 1), matched so that the sum of
        the total variations is smallest
    gone, new : topics of the model before, and of the model after, that have no partner because one
        model has more topics
    """

    before: str
    after: str
    pairs: tuple[tuple[int, int, float], ...]
    gone: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True)
class Difference:
    """Changes of documents, shards, origins and models between two versions.

    before, after : the versions
    documents, tokens : increase of the number of documents and tokens; negative for a decrease
    added, removed : shards that only the later, or only the earlier version counts. A shard whose
        content has changed is in both.
    moved : changes of the compared models, by their name or tag
    origins : (name, version before, version after) of each origin whose version differs. A version
        that has no such origin has None.
    """

    before: int
    after: int
    documents: int
    tokens: int
    added: tuple[ShardRecord, ...]
    removed: tuple[ShardRecord, ...]
    moved: dict[str, MovedTopics]
    origins: tuple[tuple[str, int | None, int | None], ...] = ()


def rollback(store: MomentStore, version: int, message: str = "") -> MomentStore:
    """Restore the state of an earlier version by a new commit; nothing is deleted.

    Segments, origins, models and tags become those of that version. Shards that were added later
    are no longer counted, so an update counts them again. Shards that were forgotten later count
    again if the restored version counts them (see `counted_again`). All other forgotten shards stay
    forgotten. Raises StoreError if the version does not exist, has expired, or is damaged; or the
    store cannot be written.

    store : store whose latest version the new commit follows
    version : version to restore
    message : message for the log; by default it names the version
    """
    # do not read the latest version: it may be damaged, and a rollback can repair that
    before = store.at(version)
    old = before.commit
    version = old.version

    def change(head: Commit) -> Commit:
        if not head.keeps(version):
            raise StoreError(
                f"version {version} has just expired; roll back to a version that is still stored"
            )
        again = len(counted_again(head, before))
        more = f"; counted again: {of_number(again, 'forgotten shard')}" if again else ""
        return head.successor(
            ROLLBACK,
            message or f"rollback to version {version}{more}",
            lineage=old.lineage,
            segments=old.segments,
            origins=old.origins,
            # leave out the stored sum of all days: if a later one replaced it, `gc` may have
            # deleted its files
            sums=without_whole(old.sums),
            models=old.models,
            tags=old.tags,
            forgotten=_not_counted(head.forgotten.joined(old.forgotten), before.ledger()),
        )

    return store.extended(change)


def counted_again(before: Commit, after: MomentStore) -> tuple[str, ...]:
    """Return the names of shards that `before` lists as forgotten, but that `after` counts.

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
    """Return the model that a tag named before the present one.

    If the tag was moved back to an earlier model, the models in between are skipped. So, after the
    tag is moved to the result, the next call goes further back. Raises StoreError if the tag never
    named another model that the version has.
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
            f"the tag {name!r} never named another model than {store.commit.tags[name]!r}; tag "
            "another model by `streaming-moments tag`"
        )
    return there[-1]


def tag(store: MomentStore, name: str, model: str, message: str = "") -> MomentStore:
    """Set a tag to a model, in one commit.

    Raises InvalidInput if the tag has characters other than A-Z a-z 0-9 . _ -, or is the name of a
    model. Raises StoreError if the model does not exist, or the store cannot be written.

    store : store whose latest version the new commit follows
    name : the tag, such as "production"
    model : name of a model, or another tag of it
    message : message for the log; by default it names the tag and the model
    """
    require_name(name)

    def change(head: Commit) -> Commit:
        chosen = model_called(head, model)
        if name in head.models:
            raise InvalidInput(f"{name!r} is the name of a model; choose another name for the tag")
        text = message or f"tag {name}: {chosen}"
        return head.successor("tag", text, tags={**head.tags, name: chosen})

    return store.extended(change)


def difference(store: MomentStore, before: int, after: int, model: str | None = None) -> Difference:
    """Compare the documents, shards, origins and models of two versions.

    Raises StoreError if a version or model does not exist, or a file is damaged.

    store : the store, at any version
    before, after : the versions; -1 is the latest. The earlier version need not come first.
    model : name or tag of the models to compare. By default, compare under each name and tag that
        stands for different models in the two versions.
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
        tuple(_origins_pulled(one.commit, two.commit)),
    )


def _origins_pulled(one: Commit, two: Commit) -> Iterator[tuple[str, int | None, int | None]]:
    for name in sorted({*one.origins, *two.origins}):
        found = [commit.origins.get(name) for commit in (one, two)]
        before, after = (None if origin is None else origin.version for origin in found)
        if found[0] != found[1]:
            yield name, before, after


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
    """Compare the topics of all models that two versions have under the same name or tag.

    Leaves out models that cannot be compared. Raises StoreError if the model `asked` is one of
    them.
    """
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
                f"the models named {name!r} cannot be compared: they have neither topics or states "
                "over the same words, nor clusters of equal dimension; `streaming-moments topics "
                "--model` shows each"
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

"""Model changes: the commit that adds a model, and moves a tag to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.log.commits import Commit, ModelReference
from streaming_moments.storage.log.layout import require_name


@dataclass(frozen=True)
class TagMove:
    """A tag that is to stand for another model.

    `before` is the model that it must still stand for, None if it must not be there yet.
    """

    name: str
    before: str | None


@dataclass(frozen=True)
class Succession:
    """An earlier model, whose labels a new model takes over.

    `topics` maps numbers of its topics to those in the new model.
    """

    model: str
    topics: Mapping[int, int]

    def labels(self, head: Commit) -> dict[int, str]:
        """Of the new model, as the earlier one has them now; none where it is gone."""
        before = head.models.get(self.model)
        labels = {} if before is None else before.labels
        return {self.topics[topic]: text for topic, text in labels.items() if topic in self.topics}


def model_added(
    head: Commit,
    name: str,
    reference: ModelReference,
    message: str,
    tag: TagMove | None = None,
    after: Succession | None = None,
) -> Commit:
    """The commit that adds a model, with its predecessor's labels, and lets a tag stand for it.

    Raises as `require_free`, and if the tag is the name of a model, or was moved meanwhile.
    """
    tags = dict(head.tags)
    if tag is not None:
        if require_name(tag.name) in head.models or tag.name == name:
            raise InvalidInput(
                f"{tag.name!r} is the name of a model; take another name for the tag"
            )
        if tags.get(tag.name) != tag.before:
            raise StoreError(
                f"the tag {tag.name!r} stood for {_named(tag.before)} when this began, and stands "
                f"for {_named(tags.get(tag.name))} now: another writer has moved it; run it again"
            )
        tags[tag.name] = name
    require_free(head, name)
    if after is not None:
        reference = replace(reference, labels=after.labels(head))
    return head.successor("model", message, models={**head.models, name: reference}, tags=tags)


def require_free(commit: Commit, name: str) -> None:
    """Raise InvalidInput for an invalid model name, and StoreError for a model or tag's name.

    Valid characters are A-Z a-z 0-9 . _ -.
    """
    require_name(name)
    if name in commit.models:
        raise StoreError(f"there is a model {name!r} already; models never change, take a new name")
    if name in commit.tags:
        raise StoreError(f"{name!r} is a tag, for model {commit.tags[name]!r}; take a new name")


def _named(model: str | None) -> str:
    return "no model" if model is None else f"model {model!r}"

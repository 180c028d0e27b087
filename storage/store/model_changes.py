"""Model changes: commits that add a model and move a tag to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.log.commits import Commit, ModelReference
from streaming_moments.storage.log.layout import require_name


@dataclass(frozen=True)
class TagMove:
    """A tag that a commit moves to another model.

    `before` is the model that the tag must still name; None if the tag must not exist yet.
    """

    name: str
    before: str | None


@dataclass(frozen=True)
class Succession:
    """An earlier model whose labels a new model takes over.

    `topics` maps topic numbers of the earlier model to topic numbers of the new model.
    """

    model: str
    topics: Mapping[int, int]

    def labels(self, head: Commit) -> dict[int, str]:
        """Return the labels that the new model takes over; none if the earlier one was deleted."""
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
    """Make the commit that adds a model with its predecessor's labels, and moves a tag to it.

    Raises the errors of `require_free`. Raises InvalidInput if the tag is the name of a model, and
    StoreError if the tag was moved meanwhile.
    """
    tags = dict(head.tags)
    if tag is not None:
        if require_name(tag.name) in head.models or tag.name == name:
            raise InvalidInput(
                f"{tag.name!r} is the name of a model; choose another name for the tag"
            )
        if tags.get(tag.name) != tag.before:
            raise StoreError(
                f"the tag {tag.name!r} named {_named(tag.before)} when this run began, and now "
                f"names {_named(tags.get(tag.name))}: another writer has moved it; run this again"
            )
        tags[tag.name] = name
    require_free(head, name)
    if after is not None:
        reference = replace(reference, labels=after.labels(head))
    return head.successor("model", message, models={**head.models, name: reference}, tags=tags)


def require_free(commit: Commit, name: str) -> None:
    """Raise InvalidInput for an invalid name of a model, and StoreError for a used name.

    Valid characters are A-Z a-z 0-9 . _ -.
    """
    require_name(name)
    if name in commit.models:
        raise StoreError(
            f"there is already a model {name!r}; models never change, choose a new name"
        )
    if name in commit.tags:
        raise StoreError(f"{name!r} is a tag of model {commit.tags[name]!r}; choose a new name")


def _named(model: str | None) -> str:
    return "no model" if model is None else f"model {model!r}"

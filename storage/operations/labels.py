"""Labels: names that users give to topics, stored with the model and matched to later models."""

from __future__ import annotations

from dataclasses import replace

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.models.states import states_of
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.layout import require_label
from streaming_moments.storage.operations.lineages import states_compared
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.model_changes import Succession
from streaming_moments.storage.store.store import MomentStore


def label(
    store: MomentStore, topic: int, text: str, model: str | None = None, message: str = ""
) -> MomentStore:
    """Label a topic by a commit. An empty text removes the label.

    A label has up to 100 characters on one line. `model` is a name or tag, by default the latest
    model. The default message names the topic, the text and the model.
    """
    chosen = model_called(store.commit, model)
    states = states_of(store.load_any_model(chosen))
    if states is None:
        raise InvalidInput(
            f"model {chosen!r} has no topics, states or clusters that later models can match, so "
            "it cannot have labels"
        )
    topics = states.number
    if not 0 <= topic < topics:
        raise InvalidInput(
            f"model {chosen!r} has topics 0 to {topics - 1}, not {topic}",
            "{topics} shows them",
        )
    if text:
        require_label(text)

    def change(head: Commit) -> Commit:
        reference = head.models[model_called(head, chosen)]
        labels = {number: other for number, other in reference.labels.items() if number != topic}
        labels |= {topic: text} if text else {}
        said = message or f"label topic {topic} of {chosen}: {text or 'none'}"
        models = {**head.models, chosen: replace(reference, labels=dict(sorted(labels.items())))}
        return head.successor("label", said, models=models)

    return store.extended(change)


def succession(store: MomentStore, model: Model) -> Succession | None:
    """Match the topics of a new model to the topics of the last model with labels.

    The model must have the vocabulary of the store. Returns None if no model has labels, or if
    `states_compared` cannot compare the two models.
    """
    labelled = [name for name, reference in store.models.items() if reference.labels]
    before = store.load_any_model(labelled[-1]) if labelled else None
    found = None if before is None else states_compared((store, before), (store, model))
    if found is None:
        return None
    return Succession(labelled[-1], {pair.before: pair.after for pair in found.kept})

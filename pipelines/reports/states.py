"""States of models without topics, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from streaming_moments.models.base import Model
from streaming_moments.models.states import WITH_TABLES, Clusters, states_of
from streaming_moments.numerics.relevance import top_words
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class StateLine:
    """One hidden state.

    weight : share of the state
    words : most probable words of each view, in decreasing order
    probabilities : probabilities of these words
    label : name that a user gave to the state
    """

    state: int
    weight: float
    words: Mapping[str, tuple[str, ...]]
    probabilities: Mapping[str, tuple[float, ...]]
    label: str | None = None


def state_lines(
    model: Any, store: MomentStore, number: int, labels: Mapping[int, str] = MappingProxyType({})
) -> list[StateLine]:
    """Return the states of a model with their most probable words.

    Clusters of rows have no words. Returns an empty list for a family whose states have neither
    words nor means of rows.
    """
    if isinstance(states_of(model), Clusters):
        weights = enumerate(model.weights.tolist())
        return [StateLine(state, weight, {}, {}, labels.get(state)) for state, weight in weights]
    if model.name not in WITH_TABLES:
        return []
    words: Mapping[str, Vocabulary] = store.foundation.words
    tops = {name: top_words(table, number) for name, table in model.tables.items()}
    lines = []
    for state, weight in enumerate(model.weights.tolist()):
        found, shares = {}, {}
        for name, table in model.tables.items():
            used = [row for row in tops[name][state] if table[row, state] > 0]
            found[name] = tuple(words[name].terms[row] for row in used)
            shares[name] = tuple(table[used, state].tolist())
        lines.append(StateLine(state, weight, found, shares, labels.get(state)))
    return lines


def states_as_json(lines: Sequence[StateLine]) -> list[Any]:
    """Return the states as JSON."""
    return [json_value(asdict(line)) for line in lines]


def parameters_as_json(model: Model) -> dict[str, Any]:
    """Return means and variances of a mixture, columns of factors and similar values, as JSON.

    Empty for models that are not of rows of numbers.
    """
    if not model.of_numbers:
        return {}
    arrays, _ = model.parts()
    return {"parameters": {name: json_value(array.tolist()) for name, array in arrays.items()}}


def shown_words(line: StateLine, view: str) -> str:
    """Format the words of a view as a list in which each word is visible."""
    return ", ".join(map(visible, line.words[view]))


def visible(word: str) -> str:
    """Format a word; if it consists of blanks, quote it, so that they are visible.

    Examples
    --------
    >>> visible("sea"), visible(" ")
    ('sea', "' '")
    """
    return word if word.strip() else repr(word)


def no_bars(model: Any, halves: bool) -> str:
    """Say why a model has no error bars; empty if it has some or its family never has any.

    `halves` says whether the statistics have halves of the records, which error bars need.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.full((2, 1), 0.5), np.ones(1))
    >>> no_bars(model, halves=True)
    'no error bars: one half of the records cannot support this model; ...'
    """
    if not model.compares_halves or getattr(model, model.halves_give) is not None:
        return ""
    if halves:
        return (
            "no error bars: one half of the records cannot support this model; count more "
            "records, or fit fewer"
        )
    return "no error bars: the store has no halves of the records"

"""How pages show states of models without topics: as a table, or a picture in lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from streaming_moments.pipelines.reports.model_pages.page_specs import PageRequest
from streaming_moments.pipelines.reports.page import ReportPage, TopicReport
from streaming_moments.pipelines.reports.states import shown_words, state_lines, visible
from streaming_moments.storage.store.store import MomentStore

_IN_A_REPORT = 10  # store this many words of each view in a report
_ON_A_PAGE = 10


def parts_of(
    store: MomentStore, name: str, model: Any, found: Mapping[int, Any]
) -> tuple[TopicReport, ...]:
    """Return the states of a model and their words, as the objects that reports use for topics."""
    bars = getattr(model, "bars", None)
    made = []
    for line in state_lines(model, store, _IN_A_REPORT, store.models[name].labels):
        # list the first word of every view, then the second word of every view, and so on
        ranks = zip_longest(*line.words.values())
        words = tuple(visible(word) for rank in ranks for word in rank if word is not None)
        bar = None if bars is None else float(bars[line.state])
        made.append(TopicReport(line.state, line.weight, None, words, (), bar, label=line.label))
    return tuple(made)


def with_states(page: ReportPage, asked: PageRequest) -> ReportPage:
    """Add the numbers and most probable words of each state to a page, or the model's picture."""
    said = asked.model.described()
    columns = {column: tuple(values.tolist()) for column, values in said.columns.items()}
    words: dict[str, tuple[str, ...]] = {}
    labels = asked.store.commit.models[asked.name].labels
    if lines := state_lines(asked.model, asked.store, _ON_A_PAGE, labels):
        if labels:
            words["label"] = tuple(one.label or "" for one in lines)
        views = lines[0].words
        words |= {view: tuple(shown_words(one, view) for one in lines) for view in views}
    return replace(page, states=columns, state_words=words, picture=said.picture)

"""Follow the parts of a model, such as topics or clusters, through earlier models of a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streaming_moments.pipelines.reports.model_pages.page_specs import PreviousModel
from streaming_moments.pipelines.reports.page import ShareOverTime
from streaming_moments.quality.matching import TopicMatching
from streaming_moments.quality.moves import with_moves
from streaming_moments.storage.operations.lineages import states_compared
from streaming_moments.storage.store.store import MomentStore

_MOST = 30  # a page compares at most this many models


def followed_in(store: MomentStore, name: str, model: Any, what: str) -> PreviousModel | None:
    """Return the latest stored model of the same family that was fitted to an earlier version.

    If several were fitted to one version, it is the last of them. Returns None if no model can be
    compared. `what` is the noun for a part of the model.
    """
    later, first = model, None
    numbers = {part: part for part in range(model.n_topics)}
    rows = [(_date(store, name), tuple(model.weights.tolist()))]
    for called, older in _earlier(store, name, model):
        matching = states_compared((store, older), (store, later))
        if matching is None:
            break
        if first is None:
            first = called, older, with_moves(matching, older, later)
        origins = {pair.after: pair.before for pair in matching.kept}
        numbers = {part: origins[one] for part, one in numbers.items() if one in origins}
        if not numbers:
            break
        shares = {part: float(older.weights[one]) for part, one in numbers.items()}
        row = tuple(shares.get(part, 0.0) for part in range(model.n_topics))
        rows.append((_date(store, called), row))
        later = older
    if first is None:
        return None
    called, older, matching = first
    rows.reverse()
    note = (
        f"Weights of the {what}s in the models of earlier versions. A {what} that did not exist "
        "yet has weight 0."
    )
    shares_of = ShareOverTime(tuple(date for date, _ in rows), tuple(row for _, row in rows), note)
    return PreviousModel(
        older, matching, _date(store, called), store.models[called].labels, shares_of
    )


def notes_of(matching: TopicMatching) -> dict[int, str]:
    """Return a note about the change of each part of a model, by number.

    Examples
    --------
    >>> from streaming_moments.quality.matching import KeptTopic, LoneTopic
    >>> kept, born = (KeptTopic(0, 0, 0.1, moved=True),), (LoneTopic(1, 0, 0.9),)
    >>> notes_of(TopicMatching(kept, (), born, (), ()))
    {0: 'moved', 1: 'new'}
    """
    moves = {
        pair.after: "moved" if pair.moved else "within noise"
        for pair in matching.kept
        if pair.moved is not None
    }
    notes = {lone.topic: "new" for lone in matching.born}
    for mix in matching.split:
        notes |= {part: f"split from {mix.whole}" for part in mix.parts if part in notes}
    for mix in matching.merged:
        notes[mix.whole] = f"merged from {mix.parts[0]} and {mix.parts[1]}"
    return moves | notes


def _earlier(store: MomentStore, name: str, model: Any) -> Iterator[tuple[str, Any]]:
    """Yield one stored model of the same family for each earlier version, the latest first."""
    version, found = store.models[name].version, 0
    latest_first = sorted(store.models.items(), key=lambda one: one[1].version)[::-1]
    for called, reference in latest_first:
        if reference.version >= version or not store.commit.keeps(reference.version):
            continue
        older = store.load_any_model(called)
        if type(older) is not type(model):
            continue
        version, found = reference.version, found + 1
        yield called, older
        if found == _MOST:
            return


def _date(store: MomentStore, name: str) -> str:
    """Return the last day of a model's documents, or the commit's time if they have no days."""
    version = store.models[name].version
    commit = store.at(version).commit if store.commit.keeps(version) else store.commit
    days = [part.dates.last for part in commit.segments if part.dates is not None]
    return str(max(days)) if days else commit.time

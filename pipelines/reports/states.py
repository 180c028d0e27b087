"""States of models without topics, and stores of other kinds, as people and programs read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from streaming_moments.models.base import Model
from streaming_moments.models.states import WITH_TABLES, Clusters, states_of
from streaming_moments.numerics.relevance import top_words
from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import (
    Status,
    days_of,
    days_text,
    skipped_rows,
    stale_models,
    status_of,
)
from streaming_moments.pipelines.reports.vector_facts import (
    said_of_vectors,
    vector_facts,
    vector_rows,
)
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeTotals
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.update import UpdateResult

# Records, triples of them, and records without one, by kind; and what lies outside.
_CALLED: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "views": ("records", "triples", "that lack a view"),
        "sequences": ("sequences", "windows", "under three symbols"),
        "edges": ("edges read", "edges counted", "of a node to itself, or there already"),
    }
)
_OUTSIDE: Mapping[str, str] = MappingProxyType(
    {
        "views": "of another word or symbol than the store counts",
        "sequences": "of another word or symbol than the store counts: sequences are cut there",
        "edges": "edges with an end that is no node of the store: left out",
    }
)


_GAPS = 3  # shown


@dataclass(frozen=True)
class StateLine:
    """One hidden state.

    Parameters
    ----------
    state : int
        Its number.
    weight : float
        Its share.
    words : mapping
        The most probable of each view, the first most.
    probabilities : mapping
        Of those.
    label : str, optional
        What people call it.
    """

    state: int
    weight: float
    words: Mapping[str, tuple[str, ...]]
    probabilities: Mapping[str, tuple[float, ...]]
    label: str | None = None


def state_lines(
    model: Any, store: MomentStore, number: int, labels: Mapping[int, str] = MappingProxyType({})
) -> list[StateLine]:
    """States of a model of a store with their most probable words.

    Clusters of rows have no words; none where a model has no states that are found again.
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
    """The lines as JSON can hold them."""
    return [json_value(asdict(line)) for line in lines]


def parameters_as_json(model: Model) -> dict[str, Any]:
    """Means and variances of a mixture, columns of factors, and the like, as JSON can hold them.

    Of models of other kinds, which have words, nothing.
    """
    if model.kind != VectorsFoundation.kind:
        return {}
    arrays, _ = model.parts()
    return {"parameters": {name: json_value(array.tolist()) for name, array in arrays.items()}}


def print_states(
    console: Console,
    lines: Sequence[StateLine],
    model: Model,
    title: str = "",
    what: str = "state",
) -> None:
    """A table of states, or of `what` they are: numbers of each, and their words, if any."""
    columns = model.described().columns
    numbers = [[f"{number:.3g}" for number in row] for row in zip(*columns.values(), strict=True)]
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
    labelled = any(line.label for line in lines)
    table.add_column(what, justify="right")
    if labelled:
        table.add_column("label", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right")
    for name in lines[0].words if lines else ():
        table.add_column(name, overflow="fold")
    for state, row in enumerate(numbers):
        words = [shown_words(lines[state], name) for name in lines[state].words] if lines else []
        called = [lines[state].label or ""] if labelled else []
        table.add_row(str(state), *called, *row, *words)
    console.print(table)


def shown_words(line: StateLine, view: str) -> str:
    """Words of a view, so that each is seen."""
    return " ".join(map(visible, line.words[view]))


def sizes_of(store: MomentStore) -> dict[str, Any]:
    """How many words a store counts, by view; of documents also the core and the basis columns."""
    foundation = store.foundation
    if isinstance(foundation, CountsFoundation):
        basis = foundation.basis
        return {"words": basis.n_words, "core": basis.core, "columns": basis.columns}
    return {"words": {name: words.n_words for name, words in foundation.words.items()}}


def sizes_text(sizes: Mapping[str, Any]) -> str:
    """Those sizes as the end of a clause; nothing of rows, which have no words.

    Examples
    --------
    >>> sizes_text({"words": 500, "core": 400, "columns": 12})
    ': 500 words, core 400, basis of 12 columns'
    >>> sizes_text({"words": {"title": 90, "author": 20}})
    ': words of title (90), author (20)'
    """
    words = sizes["words"]
    if not isinstance(words, Mapping):
        return f": {words:,} words, core {sizes['core']:,}, basis of {sizes['columns']} columns"
    said = ", ".join(f"{name} ({number:,})" for name, number in words.items())
    return f": words of {said}" if said else ""


def status_of_any(store: MomentStore) -> Status | dict[str, Any]:
    """What a store holds: the status of documents, or the facts of another kind by name."""
    return status_of(store) if store.kind == CountsFoundation.kind else kind_facts(store)


def kind_facts(store: MomentStore) -> dict[str, Any]:
    """What a store of a kind other than counts holds, by name."""
    if store.kind == VectorsFoundation.kind:
        return vector_facts(store)
    commit, totals, foundation = store.commit, store.totals(), store.foundation
    outside = sum(record.outside for record in store.ledger())
    seen = commit.tokens + outside
    return {
        "store": store.url,
        "version": store.version,
        "time": commit.time,
        "message": commit.message,
        "kind": store.kind,
        "documents": totals.n_documents,
        "without_a_triple": totals.without,
        "triples": totals.triples,
        **({"gaps": len(store.gaps())} if foundation.joins else {}),
        **(
            {"loops": totals.loops, "repeated": totals.repeated}
            if isinstance(totals, EdgeTotals)
            else {}
        ),
        "tokens": commit.tokens,
        "outside": outside,
        "outside_share": outside / seen if seen else None,
        "days": days_of(store),
        "shards": commit.shards,
        "segments": len(commit.segments),
        **sizes_of(store),
        "row_blocks": store.row_blocks,
        "state_bytes": store.layout.state_bytes,
        "halves": foundation.halves,
        "models": list(store.models),
        "tags": dict(commit.tags),
        "stale_models": [asdict(one) for one in stale_models(store)],
        "forgotten": list(commit.forgotten.names),
        "purged": len(commit.forgotten.purged),
    }


def kind_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those facts as names and values for people."""
    if facts["kind"] == VectorsFoundation.kind:
        return vector_rows(facts)
    records, triples, lacking = _CALLED[facts["kind"]]
    words = ", ".join(f"{name} {number:,}" for name, number in facts["words"].items())
    share = facts["outside_share"]
    outside = "unknown" if share is None else f"{share:.1%}"
    return [
        ("store", facts["store"]),
        ("version", f"{facts['version']}: {facts['message']}"),
        (records, f"{facts['documents']:,} ({facts['without_a_triple']:,} {lacking})"),
        (triples, f"{facts['triples']:,}"),
        ("tokens", f"{facts['tokens']:,} in the vocabulary, {outside} outside"),
        (
            "shards",
            f"{facts['shards']:,} in {facts['segments']} segments{days_text(facts['days'])}",
        ),
        ("words", words),
        ("statistics", f"{mebibytes(facts['state_bytes'])} in {facts['row_blocks']} row blocks"),
        ("halves", "kept apart" if facts["halves"] else "not kept, so no error bars"),
        ("models", ", ".join(facts["models"]) or "none; run `streaming-moments refit`"),
        ("tags", ", ".join(f"{tag} is {name}" for tag, name in facts["tags"].items()) or "none"),
        *skipped_rows(facts["forgotten"], facts["purged"]),
    ]


def said_of_kind(result: UpdateResult, final: MomentStore) -> list[str]:
    """What an update left out, and what the store holds that counts for nothing."""
    if final.kind == VectorsFoundation.kind:
        return said_of_vectors(result.outside, final.totals())
    lines = []
    if result.outside:
        lines.append(f"{result.outside:,} {_OUTSIDE[final.kind]}")
    if gaps := final.gaps():
        lines.append(
            f"{len(gaps):,} gaps in sequences, which no window spans: {'; '.join(gaps[:_GAPS])}"
        )
    totals = final.totals()
    if totals.without and isinstance(totals, EdgeTotals):
        lines.append(
            f"left out of the store {totals.repeated:,} edges that were in the same shard already, "
            f"and {totals.loops:,} of a node to itself"
        )
    elif totals.without:
        records, _, lacking = _CALLED[final.kind]
        lines.append(f"{totals.without:,} {records} of the store count for nothing: {lacking}")
    return lines


def visible(word: str) -> str:
    """A word of which each blank is seen, where it is of nothing else.

    Examples
    --------
    >>> visible("sea"), visible(" ")
    ('sea', "' '")
    """
    return word if word.strip() else repr(word)


def no_bars(model: Any, halves: bool) -> str:
    """A sentence on the error bars that a model lacks; empty where it has some or never has any.

    Parameters
    ----------
    model : Model
        Fitted.
    halves : bool
        Whether the statistics keep halves of the records apart, by which bars are made.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.full((2, 1), 0.5), np.ones(1))
    >>> no_bars(model, halves=True)
    'no error bars: a half of the records alone does not hold this model; count more, or fit fewer'
    """
    if not model.compares_halves or getattr(model, model.halves_give) is not None:
        return ""
    if halves:
        return (
            "no error bars: a half of the records alone does not hold this model; count more, or "
            "fit fewer"
        )
    return "no error bars: the store keeps no halves of the records apart"

"""KindReports: how reports describe stores of a kind, and parts for kinds that count triples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import (
    counted_at,
    days_of,
    kept_facts,
    kept_rows,
    segments_row,
    shard_facts,
    shards_row,
    size_facts,
    size_row,
    version_row,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Remedy, Spell
from streaming_moments.quality.drift import outside_share
from streaming_moments.storage.store.store import MomentStore

Facts = Mapping[str, Any]
Rows = list[tuple[str, str]]


def words_of(foundation: Any) -> dict[str, Any]:
    """Return the number of counted words, by view."""
    return {"words": {name: words.n_words for name, words in foundation.words.items()}}


def counted(told: Facts) -> dict[str, str | int | float]:
    """Return the version of a store, and its numbers of documents, tokens and shards.

    Also the share of tokens outside the vocabulary, if it is known.
    """
    facts = {name: told[name] for name in ("version", "documents", "tokens", "shards")}
    share = told.get("outside_share")
    return facts if share is None else facts | {"tokens outside": f"{share:.1%}"}


def told_by_commit(store: MomentStore) -> Facts:
    """Return the values that `counted` needs, without reading a file."""
    commit = store.commit
    return {
        "version": store.version,
        "documents": commit.documents,
        "tokens": commit.tokens,
        "shards": commit.shards,
    }


def planned(foundation: Any) -> dict[str, Any]:
    """Return the kind of a foundation, and the number of words of each view."""
    return {"kind": foundation.kind, **words_of(foundation)}


def planned_rows(foundation: Any, state: str, blocks: str, room: int) -> Rows:
    """Return a row with the number of words of each view."""
    words = ", ".join(f"{name} {own.n_words:,}" for name, own in foundation.words.items())
    return [("statistics", f"{state}: words of {words}; {blocks}")]


def common_details(facts: Facts) -> Rows:
    """Return rows for the version, the segments, the bytes and the halves of a store."""
    return [
        version_row(facts),
        segments_row(facts),
        size_row(facts),
        ("halves", "stored separately" if facts["halves"] else "without halves, so no error bars"),
    ]


def details_of_triples(facts: Facts) -> Rows:
    """Return the rows of `common_details`, and a row with the number of columns of the sketch."""
    columns = facts["sketch_columns"]
    sketch = "none: all pairs and triples" if columns is None else of_number(columns, "column")
    return [*common_details(facts), ("sketch", sketch)]


def enough(store: MomentStore, spell: Spell) -> str:
    """Return no warning."""
    return ""


def no_warnings(facts: Facts) -> list[str]:
    """Return no warnings."""
    return []


@dataclass(frozen=True)
class KindReports:
    """How reports describe the stores of a kind.

    foundation : class of the foundations of the kind
    facts : returns the facts of a store by name, or as a dataclass
    holds : key of the number of counted records in the facts, and the noun for a record
    rows : returns the names and values that `status` prints
    left_out : `left_out(outside, store)` returns lines about the `outside` items that an update
        left out, and about content of the store that is not counted
    sizes : returns the number of words of a foundation, and similar sizes
    told : returns the values of a store that `counted` needs
    counted : returns the facts that a page shows
    ledger : names of the columns of the ledger on a page
    planned : returns the sizes of a foundation in a plan, as JSON
    planned_rows : `planned_rows(foundation, state, blocks, room)` returns them as names and values
    records : text after the number of documents in a plan
    item : noun for a token of a record; empty if the record itself is the token
    advice : `advice(store, share)` returns remedies that lower the share of tokens outside the
        vocabulary, a sentence each; None if tokens are never outside
    few : `few(store, spell)` returns a warning that the store has few records, or ""
    details : returns the names and values that `status --verbose` adds
    warnings : returns reasons why models may be poor, a sentence each
    """

    foundation: Any
    facts: Callable[[MomentStore], Any]
    holds: tuple[str, str]
    rows: Callable[[Facts], Rows]
    left_out: Callable[[int, MomentStore], list[str]]
    sizes: Callable[[Any], dict[str, Any]] = words_of
    told: Callable[[MomentStore], Facts] = told_by_commit
    counted: Callable[[Facts], dict[str, str | int | float]] = counted
    ledger: tuple[str, str, str] = ("documents", "tokens", "outside")
    planned: Callable[[Any], dict[str, Any]] = planned
    planned_rows: Callable[[Any, str, str, int], Rows] = planned_rows
    records: str = ""
    item: str = "token"
    advice: Callable[[MomentStore, float | None], tuple[Remedy, ...]] | None = None
    few: Callable[[MomentStore, Spell], str] = enough
    details: Callable[[Facts], Rows] = common_details
    warnings: Callable[[Facts], list[str]] = no_warnings


def first_facts(store: MomentStore) -> dict[str, Any]:
    """Return the facts that come first for every kind: the store, its version and its kind."""
    commit = store.commit
    return {
        "store": store.url,
        "version": store.version,
        "time": commit.time,
        "message": commit.message,
        "kind": store.kind,
        "counted_at": counted_at(store),
    }


def last_facts(store: MomentStore) -> dict[str, Any]:
    """Return the facts that come last for every kind, such as bytes, halves, models and tags."""
    kept = kept_facts(store)
    kept["stale_models"] = [asdict(one) for one in kept["stale_models"]]
    facts = {**size_facts(store), "halves": store.halves, **kept}
    told: dict[str, Any] = json_value(facts)
    return told


def facts_of_triples(
    store: MomentStore, more: Callable[[Any], Facts] = lambda totals: {}
) -> dict[str, Any]:
    """Return the facts of a store that counts triples, by name.

    `more` computes further facts from the totals of the store.
    """
    totals = store.totals()
    return {
        **first_facts(store),
        "documents": totals.n_documents,
        "without_a_triple": totals.without,
        "triples": totals.triples,
        **more(totals),
        **token_facts(store),
        "sketch_columns": _sketch_columns(store.foundation),
        **last_facts(store),
    }


def _sketch_columns(foundation: Any) -> int | None:
    """Return the largest number of columns of the sketches; None without a sketch."""
    sketches = getattr(foundation, "bases", None) or (foundation.sketch,)
    return max((one.columns for one in sketches if one is not None), default=None)


def token_facts(store: MomentStore) -> dict[str, Any]:
    """Return the facts about tokens, tokens outside the vocabulary, days, shards and words."""
    commit, outside = store.commit, sum(record.outside for record in store.ledger())
    return {
        "tokens": commit.tokens,
        "outside": outside,
        "outside_share": outside_share(commit.tokens, outside),
        "days": days_of(store),
        **shard_facts(store),
        **words_of(store.foundation),
    }


def rows_of_triples(records: str, triples: str, lacking: str) -> Callable[[Facts], Rows]:
    """Return a function that formats `facts_of_triples` as names and values.

    `records` and `triples` are the nouns for the records of the store and for its triples.
    `lacking` describes records without a triple, if there are any.
    """

    def rows(facts: Facts) -> Rows:
        words, left = facts["words"], facts["without_a_triple"]
        listed = ", ".join(f"{name} {number:,}" for name, number in words.items())
        # if there is only one view, name the row after it
        sizes = [(name, f"{number:,}") for name, number in words.items() if len(words) == 1]
        share = facts["outside_share"]
        outside = f" in the vocabulary, {share:.1%} outside" if share else ""
        tokens = f"{facts['tokens']:,}{outside}"
        return [
            (records, f"{facts['documents']:,}{f' ({left:,} {lacking})' if left else ''}"),
            (triples, f"{facts['triples']:,}"),
            *([("tokens", tokens)] if facts["tokens"] != facts["triples"] else []),
            shards_row(facts),
            *(sizes or [("words", listed)]),
            *kept_rows(facts),
        ]

    return rows

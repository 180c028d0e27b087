"""KindReports: reports on stores of a kind, and parts that kinds of triples share."""

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
    """Number of counted words, by view."""
    return {"words": {name: words.n_words for name, words in foundation.words.items()}}


def counted(told: Facts) -> dict[str, str | int | float]:
    """Version, documents, tokens and shards, and tokens outside if they are reported."""
    facts = {name: told[name] for name in ("version", "documents", "tokens", "shards")}
    share = told.get("outside_share")
    return facts if share is None else facts | {"tokens outside": f"{share:.1%}"}


def told_by_commit(store: MomentStore) -> Facts:
    """Values for `counted`, without reading any file."""
    commit = store.commit
    return {
        "version": store.version,
        "documents": commit.documents,
        "tokens": commit.tokens,
        "shards": commit.shards,
    }


def planned(foundation: Any) -> dict[str, Any]:
    """The kind and its words."""
    return {"kind": foundation.kind, **words_of(foundation)}


def planned_rows(foundation: Any, state: str, blocks: str, room: int) -> Rows:
    """The words of each view."""
    words = ", ".join(f"{name} {own.n_words:,}" for name, own in foundation.words.items())
    return [("statistics", f"{state}: words of {words}; {blocks}")]


def common_details(facts: Facts) -> Rows:
    """Version, segments, bytes and halves."""
    return [
        version_row(facts),
        segments_row(facts),
        size_row(facts),
        ("halves", "stored separately" if facts["halves"] else "without halves, so no error bars"),
    ]


def details_of_triples(facts: Facts) -> Rows:
    """As `common_details`, with the columns of the sketch."""
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
    """Reports on stores of a kind.

    foundation : class of its foundations
    facts : content of a store by name, or as a dataclass
    holds : key of the number of counted records in the facts, and the noun for a record
    rows : names and values that `status` prints
    left_out : `left_out(outside, store)`: lines on the `outside` items that an update left out, and
        on content of the store that does not count
    sizes : number of words of a foundation, and similar sizes
    told : values of a store for `counted`
    counted : facts that a page shows
    ledger : names of the columns of the ledger on a page
    planned, planned_rows : sizes of a foundation in a plan, as JSON, and as names and values:
        `planned_rows(foundation, state, blocks, room)`
    records : text after the number of documents in a plan
    item : what one token of a record is called; empty if it is the record
    advice : `advice(store, share)`: remedies that lower the share of tokens outside the vocabulary,
        a sentence each; None if tokens are never outside
    few : `few(store, spell)`: a warning that the store has few records; empty for enough
    details : names and values that `status --verbose` adds
    warnings : why models may be poor, a sentence each
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
    """The store, its version and its kind."""
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
    """Bytes, halves, models, tags, and shards that updates skip."""
    kept = kept_facts(store)
    kept["stale_models"] = [asdict(one) for one in kept["stale_models"]]
    facts = {**size_facts(store), "halves": store.halves, **kept}
    told: dict[str, Any] = json_value(facts)
    return told


def facts_of_triples(
    store: MomentStore, more: Callable[[Any], Facts] = lambda totals: {}
) -> dict[str, Any]:
    """Facts of a store of triples of views, by name; `more` from its totals."""
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
    """Most columns of a sketch of views; None without a sketch."""
    sketches = getattr(foundation, "bases", None) or (foundation.sketch,)
    return max((one.columns for one in sketches if one is not None), default=None)


def token_facts(store: MomentStore) -> dict[str, Any]:
    """Tokens, tokens outside the words, days, shards and words."""
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
    """Make names and values from `facts_of_triples`, with the nouns for records and triples.

    Records without a triple are `lacking`; a row says so if there are any.
    """

    def rows(facts: Facts) -> Rows:
        words, left = facts["words"], facts["without_a_triple"]
        listed = ", ".join(f"{name} {number:,}" for name, number in words.items())
        # the words of one view have a name of their own
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

"""Registry of the reports on stores, with an entry for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from types import MappingProxyType
from typing import Any

from rich.console import Console

from streaming_moments.models.registry import DEFAULT_MODEL, models_of
from streaming_moments.pipelines.quantities import local_time
from streaming_moments.pipelines.reports.kinds.base import KindReports
from streaming_moments.pipelines.reports.kinds.counts import COUNTS
from streaming_moments.pipelines.reports.kinds.edges import EDGES
from streaming_moments.pipelines.reports.kinds.sequences import SEQUENCES
from streaming_moments.pipelines.reports.kinds.sets import SETS
from streaming_moments.pipelines.reports.kinds.vectors import VECTORS
from streaming_moments.pipelines.reports.kinds.views import VIEWS
from streaming_moments.pipelines.reports.outside_words import share_line
from streaming_moments.pipelines.reports.status import (
    Status,
    print_facts,
    print_warnings,
    stale_line,
    stale_models,
)
from streaming_moments.pipelines.reports.tables import as_json
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Spell, of_commands
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.store.store import MomentStore

_ALL: tuple[KindReports, ...] = (COUNTS, VIEWS, SEQUENCES, VECTORS, EDGES, SETS)
KIND_REPORTS: Mapping[str, KindReports] = MappingProxyType(
    {one.foundation.kind: one for one in _ALL}
)


def status_of_any(store: MomentStore) -> Status | dict[str, Any]:
    """Return the status of a store of documents, or for other kinds the facts of the store."""
    found: Status | dict[str, Any] = KIND_REPORTS[store.kind].facts(store)
    return found


def status_as_json(found: Any) -> dict[str, Any]:
    """Return the result of `status_of_any` as JSON."""
    return found if isinstance(found, dict) else as_json(found)


def print_status_of(console: Console, found: Any, store: MomentStore, detailed: bool) -> None:
    """Print the result of `status_of_any` for people, the answer first."""
    reports = KIND_REPORTS[store.kind]
    facts = found if isinstance(found, dict) else vars(found)
    holds = f"{store.url} holds {of_number(facts[reports.holds[0]], record_noun(store))}"
    if facts["counted_at"] is not None:
        holds += f", last counted {local_time(facts['counted_at'])}"
    console.print(f"{holds}.", soft_wrap=True)
    print_facts(console, [*reports.rows(facts), *(reports.details(facts) if detailed else ())])
    print_warnings(console, [*reports.warnings(facts), *map(stale_line, stale_models(store))])


def next_step(store: MomentStore, found: Any) -> str:
    """Return the command that `status` suggests as the next one."""
    facts = found if isinstance(found, dict) else vars(found)
    if not store.commit.documents:
        return f"Next: streaming-moments update {quote(store.url)} SHARDS..."
    if store.models and not facts["stale_models"]:
        return f"Next: streaming-moments topics {quote(store.url)}"
    fitting = [one.name for one in models_of(store.kind)]
    model = "" if DEFAULT_MODEL in fitting else f" --model {fitting[0]} --topics auto"
    return f"Next: streaming-moments refit {quote(store.url)}{model}"


def record_noun(store: MomentStore) -> str:
    """Return the noun for a record of a store; for a table of categories, it is "row"."""
    has_table = getattr(getattr(store.foundation, "basis", None), "table", None) is not None
    return "row" if has_table else KIND_REPORTS[store.kind].holds[1]


def records_text(store: MomentStore, records: int, tokens: int) -> str:
    """Format the number of records and, if a record has several items, the number of items."""
    said = of_number(records, record_noun(store))
    item = KIND_REPORTS[store.kind].item
    return said if tokens == records or not item else f"{said}, {of_number(tokens, item)}"


def left_out_lines(outside: int, store: MomentStore) -> list[str]:
    """Return lines about items that an update left out, and about other uncounted content.

    Empty for documents, because `outside_lines` reports tokens outside their vocabulary.
    """
    return KIND_REPORTS[store.kind].left_out(outside, store)


def advice_on(
    store: MomentStore, share: float | None, spell: Spell = of_commands
) -> tuple[str, ...]:
    """Return remedies that lower the share of tokens outside the vocabulary; none if it is small.

    `spell` formats the options that a remedy names.
    """
    advice = KIND_REPORTS[store.kind].advice
    return () if advice is None else tuple(one.said(spell) for one in advice(store, share))


def warnings_on(store: MomentStore, share: float | None, spell: Spell) -> tuple[str, ...]:
    """Return reasons why models of a store may be poor, with remedies, as `status` prints them."""
    few = KIND_REPORTS[store.kind].few(store, spell)
    return (*[few] * bool(few), *advice_on(store, share, spell))


def outside_lines(store: MomentStore, share: float | None) -> list[str]:
    """Return lines about the share of tokens outside the vocabulary, with remedies.

    Returns no lines for a store of another kind than documents.
    """
    if share is None or KIND_REPORTS[store.kind].advice is None or store.basis.table is not None:
        return []
    return [share_line(share), *advice_on(store, share)]


def sizes_of(store: MomentStore) -> dict[str, Any]:
    """Return the number of words by view, and for documents the core and columns of the basis."""
    return KIND_REPORTS[store.kind].sizes(store.foundation)


def sizes_text(sizes: Mapping[str, Any]) -> str:
    """Format the result of `sizes_of` as the end of a clause; empty for rows, which have no words.

    Examples
    --------
    >>> sizes_text({"words": 500, "core": 400, "columns": 12})
    ': 500 words'
    >>> sizes_text({"words": {"title": 90, "author": 20}})
    ': words of title (90), author (20)'
    >>> sizes_text({"words": {"nodes": 60}})
    ': 60 nodes'
    """
    words = sizes["words"]
    if not isinstance(words, Mapping):
        return f": {of_number(words, 'word')}"
    if len(words) == 1:
        [(name, number)] = words.items()
        return f": {of_number(number, name.removesuffix('s'))}"
    said = ", ".join(f"{name} ({number:,})" for name, number in words.items())
    return f": words of {said}" if said else ""


def details_text(sizes: Mapping[str, Any]) -> str:
    """Format how the words of documents are stored; empty for other kinds.

    Examples
    --------
    >>> details_text({"words": 500, "core": 400, "columns": 12})
    'Core of 400 words, basis of 12 columns.'
    """
    if "core" not in sizes:
        return ""
    core, columns = of_number(sizes["core"], "word"), of_number(sizes["columns"], "column")
    return f"Core of {core}, basis of {columns}."


def counted_facts(told: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Return the counts of a store by the names that a page shows.

    Facts that do not name a kind are of a store of documents.
    """
    return KIND_REPORTS[told.get("kind", CountsFoundation.kind)].counted(told)

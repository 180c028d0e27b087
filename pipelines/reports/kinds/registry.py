"""Reports of kinds: what is said of stores of each kind, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Console

from streaming_moments.pipelines.reports.kinds.base import KindReports
from streaming_moments.pipelines.reports.kinds.counts import COUNTS
from streaming_moments.pipelines.reports.kinds.edges import EDGES
from streaming_moments.pipelines.reports.kinds.sequences import SEQUENCES
from streaming_moments.pipelines.reports.kinds.sets import SETS
from streaming_moments.pipelines.reports.kinds.vectors import VECTORS
from streaming_moments.pipelines.reports.kinds.views import VIEWS
from streaming_moments.pipelines.reports.outside_words import share_line
from streaming_moments.pipelines.reports.status import Status
from streaming_moments.pipelines.reports.tables import as_json
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.store.store import MomentStore

_ALL: tuple[KindReports, ...] = (COUNTS, VIEWS, SEQUENCES, VECTORS, EDGES, SETS)
KIND_REPORTS: Mapping[str, KindReports] = MappingProxyType(
    {one.foundation.kind: one for one in _ALL}
)


def status_of_any(store: MomentStore) -> Status | dict[str, Any]:
    """What a store holds: the status of documents, or the facts of another kind by name."""
    found: Status | dict[str, Any] = KIND_REPORTS[store.kind].facts(store)
    return found


def status_as_json(found: Any) -> dict[str, Any]:
    """What `status_of_any` gave, as JSON."""
    return found if isinstance(found, dict) else as_json(found)


def print_status_of(console: Console, found: Any, store: MomentStore) -> None:
    """What `status_of_any` gave of a store, for people."""
    KIND_REPORTS[store.kind].show(console, found, store)


def left_out_lines(outside: int, store: MomentStore) -> list[str]:
    """What an update left out, and what the store holds that counts for nothing.

    Of documents nothing: of what is outside their vocabulary `outside_lines` tells.
    """
    return KIND_REPORTS[store.kind].left_out(outside, store)


def advice_on(store: MomentStore, share: float | None) -> tuple[str, ...]:
    """What would lower a share of tokens outside the vocabulary; nothing where it is small."""
    advice = KIND_REPORTS[store.kind].advice
    return () if advice is None else advice(store, share)


def outside_lines(store: MomentStore, share: float | None) -> list[str]:
    """A share of tokens outside the vocabulary of documents, and what would lower it."""
    if share is None or KIND_REPORTS[store.kind].advice is None or store.basis.table is not None:
        return []
    return [share_line(share), *advice_on(store, share)]


def sizes_of(store: MomentStore) -> dict[str, Any]:
    """How many words a store counts, by view; of documents also the core and the basis columns."""
    return KIND_REPORTS[store.kind].sizes(store.foundation)


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


def counted_facts(told: Mapping[str, Any]) -> dict[str, str | int | float]:
    """What a store has counted, by the names that a page gives it.

    The facts of documents do not say their kind.
    """
    return KIND_REPORTS[told.get("kind", CountsFoundation.kind)].counted(told)

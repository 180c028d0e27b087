"""Sequences: reports on a store whose records are sequences of symbols."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.reports.kinds.base import (
    KindReports,
    details_of_triples,
    facts_of_triples,
    rows_of_triples,
)
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.storage.store.store import MomentStore

_LACKING = "of under three symbols"
_GAPS = 3  # name at most this many gaps in numbered sequences in a message


def _facts(store: MomentStore) -> dict[str, Any]:
    gaps = {"gaps": len(store.gaps())} if store.foundation.joins else {}
    return facts_of_triples(store, lambda totals: gaps)


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines = []
    if outside:
        lines.append(
            agreeing(outside, "word or symbol is", "words or symbols are")
            + " not in the store: sequences are split there"
        )
    if gaps := store.gaps():
        lines.append(
            f"{of_number(len(gaps), 'gap')} in sequences, which no window spans: "
            f"{'; '.join(gaps[:_GAPS])}"
        )
    totals = store.totals()
    if totals.without:
        lines.append(
            f"not counted: {of_number(totals.without, 'sequence')} of the store {_LACKING}"
        )
    return lines


SEQUENCES = KindReports(
    SequencesFoundation,
    _facts,
    ("documents", "sequence"),
    rows_of_triples("sequences", "windows", _LACKING),
    _left_out,
    item="symbol",
    details=details_of_triples,
)

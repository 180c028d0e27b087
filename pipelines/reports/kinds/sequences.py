"""Sequences: reports on stores of symbols in order."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.reports.kinds.base import (
    KindReports,
    facts_of_triples,
    rows_of_triples,
    show_rows,
)
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.storage.store.store import MomentStore

_LACKING = "under three symbols"
_GAPS = 3  # number of gaps in a message


def _facts(store: MomentStore) -> dict[str, Any]:
    gaps = {"gaps": len(store.gaps())} if store.foundation.joins else {}
    return facts_of_triples(store, lambda totals: gaps)


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines = []
    if outside:
        lines.append(
            f"{outside:,} words or symbols are not in the store: sequences are split there"
        )
    if gaps := store.gaps():
        lines.append(
            f"{len(gaps):,} gaps in sequences, which no window spans: {'; '.join(gaps[:_GAPS])}"
        )
    totals = store.totals()
    if totals.without:
        lines.append(f"{totals.without:,} sequences of the store do not count: {_LACKING}")
    return lines


SEQUENCES = KindReports(
    SequencesFoundation,
    _facts,
    show_rows(rows_of_triples("sequences", "windows", _LACKING)),
    _left_out,
)

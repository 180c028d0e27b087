"""Counts: reports on stores of documents."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.quantities import about
from streaming_moments.pipelines.reports.kinds.base import Facts, KindReports, Rows, told_by_commit
from streaming_moments.pipelines.reports.outside_words import advice_of, share_outside
from streaming_moments.pipelines.reports.status import (
    details_of,
    few_documents,
    rows_of,
    status_of,
    warnings_of,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.store.store import MomentStore


def _left_out(outside: int, store: MomentStore) -> list[str]:
    return []


def _told(store: MomentStore) -> Facts:
    return {**told_by_commit(store), "outside_share": share_outside(store)}


def _sizes(foundation: CountsFoundation) -> dict[str, Any]:
    basis = foundation.basis
    return {"words": basis.n_words, "core": basis.core, "columns": basis.columns}


def _planned(foundation: CountsFoundation) -> dict[str, Any]:
    basis = foundation.basis
    return {"words": basis.n_words, "core": basis.core, "basis_columns": basis.columns}


def _planned_rows(foundation: CountsFoundation, state: str, blocks: str, room: int) -> Rows:
    basis = foundation.basis
    sizes = (
        f"{of_number(basis.n_words, 'word')}, core {basis.core:,}, "
        f"{of_number(basis.columns, 'column')}"
    )
    return [
        ("statistics", f"{state}: {sizes}, {blocks}"),
        (
            "length weights",
            f"{basis.weights.sentence}; capacity: {about(room)} such documents",
        ),
    ]


COUNTS = KindReports(
    CountsFoundation,
    status_of,
    ("documents", "document"),
    rows_of,
    _left_out,
    _sizes,
    _told,
    planned=_planned,
    planned_rows=_planned_rows,
    records=" (passages)",
    advice=advice_of,
    few=few_documents,
    details=details_of,
    warnings=warnings_of,
)

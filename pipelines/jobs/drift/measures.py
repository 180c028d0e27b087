"""Measures of drift, one row each: from two states of a store, and what they are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.drift.states import DriftStates


@dataclass(frozen=True)
class DriftMeasure:
    """A number of `quality.Drift`.

    key : its field there; it has the same one in runs on pages, metrics and reports of nights
    of : computes it; None where it is unknown
    metric, help : as Prometheus has it
    text : as `status` calls it; one without a text is not shown there
    any_kind : whether stores of all kinds have it; otherwise those of documents alone
    unknown : in place of it elsewhere
    """

    key: str
    of: Callable[[DriftStates], float | None]
    metric: str
    help: str
    text: str = ""
    any_kind: bool = False
    unknown: float | None = None


DRIFT_MEASURES = (
    DriftMeasure(
        "captured",
        lambda states: states.captured(),
        "captured_spectrum",
        "Smallest share of an eigenvalue that the basis sees.",
        "captured spectrum",
    ),
    DriftMeasure(
        "outside_share",
        lambda states: states.outside_share(),
        "outside_share",
        "Share of tokens outside the vocabulary.",
        "outside the vocabulary",
        any_kind=True,
    ),
    DriftMeasure(
        "effective_documents",
        lambda states: states.lengths.effective_documents,
        "effective_documents",
        "Effective number of documents.",
        unknown=nan,
    ),
    DriftMeasure(
        "pair_distance",
        lambda states: states.pair_distance(),
        "pair_distance",
        "Total variation of the pair distributions of the last two runs.",
        "distance of pair distributions",
    ),
)

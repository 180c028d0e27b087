"""The measures of drift, one entry for each: the function that computes it, and its names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.drift.states import DriftStates
    from streaming_moments.quality.drift import Drift


@dataclass(frozen=True)
class RunChart:
    """Chart on a page: how a number changed over the last runs.

    title, note : texts above it
    low, high : ends of its axis; None takes them from the values
    percent : whether values are shares
    """

    title: str
    note: str
    low: float | None = None
    high: float | None = None
    percent: bool = False


@dataclass(frozen=True)
class NightColumn:
    """A column in the table of the last nightly runs, on the health page of the service.

    head : its title
    meaning : its explanation
    form : format of its numbers
    """

    head: str
    meaning: str
    form: str


# Nouns for what a store counts: its records, the parts of a record, and the parts that are left
# out.
Counted = tuple[str, str, str]


@dataclass(frozen=True)
class DriftMeasure:
    """Measure of `quality.Drift`.

    key : its field in `Drift`, and its key in metrics and reports of nightly runs
    of : function that computes the measure; it returns None if the measure is unknown
    chart : function that makes a chart of the measure, from the nouns for what the store counts
    metric, help : name and help for Prometheus
    text : name in `status`; without it the measure is not shown there
    any_kind : whether stores of all kinds have it, or only those of documents
    unknown : value of the measure for stores of kinds that do not have it
    column : its column on the health page, if it has one
    """

    key: str
    of: Callable[[DriftStates], float | None]
    chart: Callable[[Counted], RunChart]
    metric: str
    help: str
    text: str = ""
    any_kind: bool = False
    unknown: float | None = None
    column: NightColumn | None = None


# matches a lower-case word that is not a path, URL, file name, key or option
_WORD = re.compile(r"[a-z]+('s)?(-[a-z]+)*(?![^\s,;:.?!)]|[:.]\S)")


def sentence_case(text: str) -> str:
    """Return the text with a capital first letter, unless it begins with a name.

    Examples
    --------
    >>> sentence_case("no shards"), sentence_case("s3://corpus/a.txt is empty")
    ('No shards', 's3://corpus/a.txt is empty')
    """
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def _outside_chart(counted: Counted) -> RunChart:
    records, tokens, outside = counted
    if outside == "outside":
        title, whole = "Tokens outside the vocabulary", tokens
    else:
        title, whole = f"{sentence_case(records)} {outside}", records
    return RunChart(title, f"share of all {whole}", low=0, percent=True)


DRIFT_MEASURES = (
    DriftMeasure(
        "captured",
        lambda states: states.captured(),
        lambda counted: RunChart(
            "Captured spectrum", "smallest preserved share of an eigenvalue, 1 is best", 0, 1
        ),
        "captured_spectrum",
        "Smallest share of an eigenvalue that the basis preserves.",
        "captured spectrum",
        column=NightColumn(
            "captured", "share of the spectrum that the basis preserves, 1 is best", ".2f"
        ),
    ),
    DriftMeasure(
        "outside_share",
        lambda states: states.outside_share(),
        _outside_chart,
        "outside_share",
        "Share of tokens outside the vocabulary.",
        "outside the vocabulary",
        any_kind=True,
        column=NightColumn("outside, %", "share of the words that the vocabulary lacks", ".2%"),
    ),
    DriftMeasure(
        "effective_documents",
        lambda states: states.lengths.effective_documents,
        lambda counted: RunChart("Effective documents", "below some hundreds, topics are rough", 0),
        "effective_documents",
        "Effective number of documents.",
        unknown=nan,
    ),
    DriftMeasure(
        "pair_distance",
        lambda states: states.pair_distance(),
        lambda counted: RunChart(
            "Distance from the run before", "total variation of the pair distributions", 0
        ),
        "pair_distance",
        "Total variation of the pair distributions of the last two runs.",
        "distance of pair distributions",
        column=NightColumn(
            "moved", "distance of the word pairs from those of the night before, 0 to 1", ".3f"
        ),
    ),
)


def night_cells(drift: Drift) -> list[str]:
    """Format the measures of a nightly run, a text for each column; a dash for unknown values."""
    shown = [(getattr(drift, one.key), one.column) for one in DRIFT_MEASURES if one.column]
    unknown = "\N{EN DASH}"
    return [unknown if x is None else format(x, column.form).rstrip("%") for x, column in shown]

"""One self-contained page about a run: it loads nothing, so it can be mailed or put in a bucket."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.drift.measures import (
    DRIFT_MEASURES,
    RunChart,
    sentence_case,
)
from streaming_moments.pipelines.reports.headline import headline_of
from streaming_moments.pipelines.reports.page import ReportPage, RunPoint, TopicChange
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT
from streaming_moments.pipelines.reports.topic_reports import topic_names
from streaming_moments.printing.number_texts import short
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import followed
from streaming_moments.quality.differences import beyond_noise
from streaming_moments.quality.topic_map import classical_scaling


def html_report(page: ReportPage) -> str:
    """Return the HTML of a page, with its style and its script inside.

    Words, URLs and reasons are escaped, never read as HTML.

    Parameters
    ----------
    page : ReportPage
        Content of the page.

    Raises
    ------
    InvalidInput
        Distances, correlations or shares do not match the topics; the message names the sizes.

    Examples
    --------
    >>> page = ReportPage("Topics", "s3://bucket/store", "2026-05-01T03:15:00Z", "nothing new")
    >>> html_report(page).startswith("<!DOCTYPE html>")
    True
    """
    return rendered("report.html", page=page, content=content_of(page), headline=headline_of(page))


def content_of(page: ReportPage) -> dict[str, Any]:
    """Return the data for the scripts of a page, as JSON; errors as in `html_report`."""
    _require_fitting(page)
    content: dict[str, Any] = json_value(asdict(page))
    content["places"] = classical_scaling(page.distances).tolist() if page.distances else []
    content["relevance_weight"] = RELEVANCE_WEIGHT
    content["names"] = topic_names(page.topics, page.what)
    content["runs"] = [_run(one) for one in page.runs]
    content["run_charts"] = _run_charts(page)
    content["coherences"] = [
        {"key": one.key, "column": one.column, "name": one.name, "digits": one.digits}
        for one in followed()
    ]
    return content


def _run(run: RunPoint) -> dict[str, Any]:
    """Return the values of a run by name; None for missing ones."""
    told = asdict(run)
    drift = told.pop("drift") or dict.fromkeys(one.key for one in DRIFT_MEASURES)
    found: dict[str, Any] = json_value({**told, **drift})
    return found


def _run_charts(page: ReportPage) -> list[dict[str, Any]]:
    """Return the charts over time, one point for each run, each with the key of its measure."""
    charts = {one.key: one.chart(page.counted) for one in DRIFT_MEASURES}
    charts["documents"] = RunChart(f"{sentence_case(page.counted[0])} counted", "in all")
    return [{"key": key, **asdict(chart)} for key, chart in charts.items()]


def measured_as_json(page: ReportPage) -> dict[str, Any]:
    """Return clusters or factors of a page with their measures, as JSON; empty for other models."""
    if not page.measures:
        return {}
    kept = ("topic", "label", "weight", "bar", "told", "coordinates", "nearest")
    parts = [{name: asdict(one)[name] for name in kept} for one in page.topics]
    plane = {} if page.plane is None else {"plane": asdict(page.plane)}
    told: dict[str, Any] = json_value(
        {
            f"{page.what}s": [{"number": one.pop("topic"), **one} for one in parts],
            "measures": [asdict(one) for one in page.measures],
            "changes": [asdict(one) for one in page.changes],
            **plane,
        }
    )
    return told


def rendered(template: str, **values: object) -> str:
    """Fill one of the templates with values; all of them are escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streaming_moments.pipelines.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shortly": short, "points": _points, "step": _step}
    environment.filters["breaking"] = _breaking
    environment.filters |= {
        "coherence": coherence_of,
        "lasting": lasting,
        "sentence_case": sentence_case,
    }
    environment.globals |= {"coherences": followed(), "of_number": of_number}
    return environment


def _require_fitting(page: ReportPage) -> None:
    k = len(page.topics)
    for name, square in (("distances", page.distances), ("correlations", page.correlations)):
        sizes = {len(square), *map(len, square)} if square else {k}
        if sizes != {k}:
            raise InvalidInput(
                f"there are {k} topics, but the matrix of {name} has sizes {sorted(sizes)}; "
                f"give a matrix of shape ({k}, {k})"
            )
    for one in (page.shares, page.periods):
        for rows in (one.shares, one.bars or one.shares):
            if len(one.dates) != len(rows) or any(len(row) != k for row in rows):
                lengths = sorted({len(row) for row in rows})
                raise InvalidInput(
                    f"there are {len(one.dates)} dates and {k} topics, but {len(rows)} rows of "
                    f"{lengths} shares; give a row of shares for each date, with a share for each "
                    "topic"
                )
    for told in page.measures:
        sizes = {len(one) for one in (told.values, told.bars, told.noise) if one}
        if sizes and sizes != {k}:
            raise InvalidInput(
                f"there are {k} {page.what}s, but the measure {told.name} has arrays of length "
                f"{', '.join(map(str, sorted(sizes)))}; give arrays of length {k}"
            )
    if page.plane is not None and len(page.plane.places) != k:
        raise InvalidInput(
            f"there are {k} clusters, but {len(page.plane.places)} places in the plane; give one "
            "place in the plane for each cluster"
        )
    if len(page.spectrum) != len(page.exact_spectrum):
        raise InvalidInput(
            f"the basis gives {len(page.spectrum)} eigenvalues, but there are "
            f"{len(page.exact_spectrum)} exact ones; give as many of both"
        )


def lasting(seconds: float) -> str:
    """Format a duration in its largest unit.

    Examples
    --------
    >>> lasting(0.2), lasting(7.2), lasting(90), lasting(7200), lasting(3e6)
    ('under 1 s', '7 s', '2 min', '2 h', '35 days')
    """
    if seconds < 0.5:
        return "under 1 s"
    for unit, size in ((" days", 86_400), (" h", 3_600), (" min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f} s"


def _breaking(text: object) -> Markup:
    """Let a long name, such as gaussian_mixture, break into lines after its underscores."""
    return escape(text).replace("_", Markup("_<wbr>"))


def _points(change: TopicChange) -> str:
    """Format the change of a topic's share in percentage points, or note that it is noise."""
    if change.before is None or change.now is None:
        return _signed(change.step)  # the topic exists in only one of the models
    return _step((change.step, change.bar))


def _step(step: tuple[float, float | None]) -> str:
    """Format a difference in percentage points, or as "noise"; add "?" if its error is unknown."""
    change, bar = step
    if bar is None or not math.isfinite(bar):
        return f"{_signed(change)}?"
    return _signed(change) if beyond_noise(change, bar) else "noise"


def _signed(step: float) -> str:
    return f"{100 * step:+.1f}".replace("-", "\N{MINUS SIGN}")

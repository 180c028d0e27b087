"""The index page of the nightly runs, which links to the page of each run."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.pipelines.nightly.history import MOST_NIGHTS, Night, NightHistory, night_of
from streaming_moments.pipelines.nightly.report import NightReport, time_in
from streaming_moments.pipelines.reports.html_report import rendered


@dataclass(frozen=True)
class _Row:
    """The page of a nightly run: its file name, its time, and the run, or None if it is unknown.

    `note` says why the run is unknown. For a run of another store, it names that store.
    """

    page: str
    time: str
    night: Night | None
    note: str = ""


def nights_index(report: NightReport, history: NightHistory) -> bytes:
    """Return an HTML list of all nightly runs with a page, the latest first.

    It shows how the last runs ended, and nothing about documents or topics. So it need not change
    when a page is deleted. `history` has the earlier runs, and the names of their pages. Runs for
    other stores with reports in the same folder are listed with the name of their store.

    Examples
    --------
    >>> report = NightReport("store", "2026-05-01T03:15:00+00:00")
    >>> before = "night-20260430T031500000000Z.html"
    >>> html = nights_index(report, NightHistory(pages=(before,))).decode()
    >>> html.index(report.file_name(".html")) < html.index(before)
    True
    >>> "2026-04-30 03:15" in html, "its report is missing" in html
    (True, True)
    """
    own, tonight = report.file_name(".html"), night_of(report)
    mine = {one.page: one for one in history.nights} | {own: tonight}
    others = {one.page: one for one in history.others}
    read = [name.removesuffix(".json") + ".html" for name in history.unread]
    read += [name for name in (*mine, *others) if name]
    rows = []
    for page in sorted({*history.pages, own}, reverse=True):
        night = mine.get(page) or others.get(page)
        note = f"of the store {night.store}" if night is not None and page in others else ""
        if night is None:
            older = len(read) > MOST_NIGHTS and page < min(read)
            why = f"older than the last {MOST_NIGHTS} reports"
            note = why if older else "its report is missing or cannot be read"
        rows.append(_Row(page, _time(page, night), night, note))
    timed = [row for row in reversed(rows) if row.page in mine and _seconds(row) is not None]
    content = {"rows": rows, "timed": timed, "last": tonight, "store": report.store}
    return rendered("index.html", **content).encode()


def _time(page: str, night: Night | None) -> str:
    found = time_in(page)
    text = night.started if night is not None else page if found is None else found.isoformat()
    return text[:16].replace("T", " ") if night is not None or found is not None else text


def _seconds(row: _Row) -> float | None:
    return None if row.night is None else row.night.seconds

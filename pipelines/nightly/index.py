"""The index page of the nights, which links to their pages."""

from __future__ import annotations

from streaming_moments.pipelines.nightly.history import NightHistory, night_of
from streaming_moments.pipelines.nightly.report import NightReport
from streaming_moments.pipelines.reports.html_report import rendered


def nights_index(report: NightReport, history: NightHistory) -> bytes:
    """Return an HTML list of all nights with a page, the latest first.

    It shows how the last runs ended, and nothing about documents or topics. So it stays valid when
    a page is deleted. `history` has the earlier runs, and the names of their pages.

    Examples
    --------
    >>> report = NightReport("store", "2026-05-01T03:15:00+00:00")
    >>> before = "night-20260430T031500000000Z.html"
    >>> html = nights_index(report, NightHistory(pages=(before,))).decode()
    >>> html.index(report.file_name(".html")) < html.index(before)
    True
    >>> "A night with a file name is older than the last 30" in html
    True
    >>> "A night with a file name" in nights_index(report, NightHistory()).decode()
    False
    """
    own = report.file_name(".html")
    known = {one.page: one for one in history.nights} | {own: night_of(report)}
    rows = [(page, known.get(page)) for page in sorted({*history.pages, own}, reverse=True)]
    return rendered("index.html", rows=rows, store=report.store).encode()

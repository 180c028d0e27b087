"""Error bars of shares over time are drawn so that they are seen."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from full_page import TOPICS, full_page

from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import ShareOverTime


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("days", "drawn", "number"), [(9, "whisker", 9), (90, "band", 1)])
def test_bars_have_caps_and_of_many_days_are_a_band(visiting, tmp_path, width, days, drawn, number):
    dates = tuple(str(date(2026, 5, 1) + timedelta(day)) for day in range(days))
    rows = ((1 / TOPICS,) * TOPICS,) * days
    over = ShareOverTime(dates, rows, bars=((0.02,) * TOPICS,) * days)
    path = tmp_path / "page.html"
    path.write_text(html_report(replace(full_page(), periods=over)))
    marks = visiting(path, width=width).locator(f"#periods path.{drawn}")
    assert marks.count() == TOPICS * number
    style = "mark => [getComputedStyle(mark).stroke, getComputedStyle(mark).fill]"
    stroke, fill = marks.first.evaluate(style)
    assert "none" not in ((stroke,) if drawn == "whisker" else (fill,))
    box = marks.first.bounding_box()
    # two bars of .02 in a panel of 88 pixels that ends little above 1/9 + .02
    assert 14 < box["height"] < 40
    assert box["width"] >= 6

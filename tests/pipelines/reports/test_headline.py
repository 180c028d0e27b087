"""The headline of a page names a few changes, and only those that are beyond noise."""

import re
from dataclasses import replace

import pytest

from streaming_moments.pipelines.reports.headline import headline_of
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import (
    ReportPage,
    ShareOverTime,
    TopicChange,
    TopicReport,
)

DAYS = ("2026-05-01", "2026-05-02")


def page(**more):
    topics = [TopicReport(j, 0.5, None, (word,), ()) for j, word in enumerate(["sea", "law"])]
    return ReportPage("T", "store", "2026-05-02T03:15:00Z", "published", topics=topics, **more)


def over_time(bar):
    bars = ((bar, bar),) * 2 if bar else ()
    return ShareOverTime(DAYS, ((0.4, 0.6), (0.5, 0.5)), bars=bars)


@pytest.mark.parametrize(
    ("bar", "said"),
    [
        (0.02, "; biggest change from 2026-05-01 to 2026-05-02: sea, 40.0% to 50.0%"),
        (0.05, "; no clear change from 2026-05-01 to 2026-05-02"),
        (None, "; the largest: sea, 50.0%"),
    ],
)
def test_a_change_over_time_is_beyond_its_bars_or_is_not_named(bar, said):
    assert headline_of(page(periods=over_time(bar))).endswith(said)


def changed(*bars):
    steps = [(0, "sea", 0.4, 0.45), (1, "law", 0.6, 0.55)]
    changes = [TopicChange(*step, bar=bar) for step, bar in zip(steps, bars, strict=True)]
    return page(changes=tuple(changes), since="2026-05-01")


@pytest.mark.parametrize(
    ("bars", "said"),
    [
        ((0.01, 0.04), "; biggest change: sea +5.0 points since 2026-05-01"),
        ((0.04, 0.01), "; biggest change: law \N{MINUS SIGN}5.0 points since 2026-05-01"),
        ((0.04, 0.04), "; no share has changed beyond noise since 2026-05-01"),
        ((None, None), "; the noise of the shares is unknown since 2026-05-01"),
        ((None, 0.01), "; biggest change: law \N{MINUS SIGN}5.0 points since 2026-05-01"),
    ],
)
def test_a_change_since_a_model_is_beyond_its_bars_or_is_not_named(bars, said):
    assert headline_of(changed(*bars)).endswith(said)


def test_the_column_says_what_is_noise():
    whole = changed(0.01, None)
    more = replace(whole.changes[1], bar=0.1), TopicChange(None, "war", 0.2, None, note="gone")
    shown = html_report(replace(whole, changes=(*whole.changes, *more)))
    minus = "\N{MINUS SIGN}"
    cells = re.findall(r">([^<>]*)</td><td[^>]*>\N{EN DASH}</td></tr>", shown)
    assert cells == ["+5.0", f"{minus}5.0?", "noise", f"{minus}20.0"]


def page_of(born, gone, kept=2):
    names = [f"part {number}" for number in range(kept + born + gone)]
    topics = [TopicReport(j, 0.1, None, (name,), ()) for j, name in enumerate(names[: kept + born])]
    changes = [TopicChange(j, names[j], 0.1, 0.1) for j in range(kept)]
    changes += [TopicChange(j, names[j], None, 0.1) for j in range(kept, kept + born)]
    changes += [TopicChange(j, one, 0.1, None) for j, one in enumerate(names[kept + born :])]
    of = "store", "2026-05-02T03:15:00Z", "published"
    return ReportPage("T", *of, {"rows": 9}, topics=tuple(topics), changes=tuple(changes))


def test_five_are_named_at_most():
    said = headline_of(page_of(5, 5))
    assert "5 new (part 2, part 3, part 4, part 5, part 6), 5 gone (part 7, part 8" in said
    assert "more" not in said
    said = headline_of(page_of(40, 6))
    assert ", 40 new (part 2, part 3, part 4, part 5, part 6 and 35 more)" in said
    assert ", 6 gone (part 42, part 43, part 44, part 45, part 46 and 1 more)" in said
    assert len(said) < 300

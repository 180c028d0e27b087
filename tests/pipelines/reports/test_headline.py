"""The headline of a page names a few, however many there are."""

from streaming_moments.pipelines.reports.headline import headline_of
from streaming_moments.pipelines.reports.page import ReportPage, TopicChange, TopicReport


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

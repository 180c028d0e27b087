"""Counts of documents: kernels, statistics, fits, as by default and bare.

Bare is what 0.1.0 did: each document counts once (`pooled`), no half is gathered apart, no
rounds refine the topics.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from cases import data
from cases.timing import Timed, bare, first_of

TOPICS, WORDS = 20, 10_000


class Counts(Timed):
    """20,000 documents over 10,000 words, with a basis for 20 topics of 2,000 of them."""

    documents = 20_000

    def prepare(self) -> None:
        """Draw documents and find their bases; asv calls `setup` again before each sample."""
        if hasattr(self, "batch"):
            return
        basis, batch = first_of(":Basis"), first_of(":CountBatch")
        drawn = data.documents(self.documents, WORDS)
        self.batch = batch.from_csr(drawn)
        self.few = batch.from_csr(drawn[:100])
        self.pilot = batch.from_csr(drawn[: min(2_000, self.documents)])
        self.basis = basis.from_pilot(self.pilot, TOPICS)
        pooled = bare(basis.from_pilot, length_weights="pooled")
        self.pooled = basis.from_pilot(self.pilot, TOPICS, **pooled)
        self.statistics = first_of(":MomentStatistics")
        self.no_halves = bare(self.statistics.of, halves=False)


class Kernels(Counts):
    """Sums of one batch, without halves."""

    def setup(self) -> None:
        self.prepare()
        self.projected_batch = first_of(
            ".statistics.counts.projection:ProjectedBatch", ".projection:ProjectedBatch"
        )
        # one column leaves the sums of pairs
        column = np.resize(np.array([[1], [-1], [2]], dtype=np.int8), (self.pooled.core, 1))
        self.narrow = first_of(":Basis")(column, self.pooled.n_words)
        self.narrow_batch = self.projected_batch.of(self.batch, self.narrow)

    def time_rows(self) -> None:
        """Entries by word, projections, and packed core words."""
        self.projected_batch.of(self.batch, self.pooled)

    def time_pairs(self) -> None:
        """Pairs of words, and one column of triples."""
        self.statistics.of_projected(
            [self.narrow_batch], self.narrow, codocuments=False, **self.no_halves
        )


class Statistics(Counts):
    """All that is gathered of a batch."""

    def setup(self) -> None:
        self.prepare()

    def time_default(self) -> None:
        self.statistics.of(self.batch, self.basis)

    def time_bare(self) -> None:
        self.statistics.of(self.batch, self.pooled, codocuments=False, **self.no_halves)

    def time_few(self) -> None:
        """Of 100 documents, so that most words are in none."""
        self.statistics.of(self.few, self.basis)

    def time_basis(self) -> None:
        """The basis of the pilot."""
        first_of(":Basis").from_pilot(self.pilot, TOPICS)


class Topics(Counts):
    """A fit of 20 topics, alpha0 1."""

    def setup(self) -> None:
        self.fit = first_of(":fit")
        self.no_rounds = bare(self.fit, refine=0)
        self.counted, self.barely_counted = self.made

    @cached_property
    def made(self) -> tuple[object, object]:
        """Both statistics, which a fit leaves as they are."""
        self.prepare()
        barely = self.statistics.of(self.batch, self.pooled, codocuments=False, **self.no_halves)
        return self.statistics.of(self.batch, self.basis), barely

    def time_default(self) -> None:
        self.fit(self.counted, TOPICS, 1.0)

    def time_bare(self) -> None:
        self.fit(self.barely_counted, TOPICS, 1.0, **self.no_rounds)


class Tokens(Timed):
    """Words of 10,000 texts."""

    documents = 10_000

    def setup(self) -> None:
        import pyarrow as pa

        policies = ".storage.counting.tokens:TokenPolicy", ".storage.tokens:TokenPolicy"
        counting = ".storage.counting.counting", ".storage.counting"
        index = first_of(*(f"{place}:WordIndex" for place in counting))
        vocabulary = first_of(":Vocabulary")
        spelled = data.texts(self.documents)
        terms = sorted({word.lower() for text in spelled for word in text.split()})
        self.texts = pa.array(spelled)
        self.index = index.of(vocabulary(tuple(terms), len(terms)), first_of(*policies)())
        self.count = first_of(*(f"{place}:count_column" for place in counting))

    def time_count(self) -> None:
        self.count(self.texts, self.index)

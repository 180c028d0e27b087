"""Values print in one short line, however large their arrays are."""

import numpy as np
import pytest

from streaming_moments import LengthHistogram, MomentStatistics, Vocabulary
from streaming_moments.columns import Column, Columns
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import NumberSearch
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.synthetic import lda_corpus, markov_sequences, view_records
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table

CORPUS = lda_corpus(50, n_words=40, n_topics=2, mean_length=30)
BASIS = Basis.from_pilot(CORPUS.batch, 2)
STATISTICS = MomentStatistics.of(CORPUS.batch, BASIS)
TABLE = latent_tree_table(50, n_columns=4, n_states=2, n_categories=2, seed=1)
VALUES = [
    CORPUS,
    CORPUS.batch,
    BASIS,
    STATISTICS,
    InMemory((STATISTICS,)),
    LengthHistogram.of(range(300)),
    Vocabulary(tuple(map(str, range(3000))), core=300),
    Column(np.arange(5000)),
    Columns.of(topic=np.arange(5000), shares=np.ones((5000, 40))),
    NumberSearch({number: HeldOut(-9.0, -8.0 - 1 / number) for number in range(1, 30)}),
    mixture_rows(50, 4, 2, separation=6.0, seed=1),
    markov_sequences(20, length=30, n_symbols=6, k=2, seed=1),
    view_records(50, (9, 8, 7), k=2, seed=1),
    community_graph(30, 2, inside=0.5, outside=0.05, alpha0=0.0),
    feature_sets(50, 12, 2, seed=1),
    TABLE,
    TABLE.tree,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda one: type(one).__name__)
def test_a_repr_is_a_short_line_without_arrays(value):
    shown = repr(value)
    assert shown.startswith(type(value).__name__)
    assert "\n" not in shown
    assert "array(" not in shown
    assert len(shown) < 400


def test_a_repr_says_shapes_and_numbers():
    assert repr(CORPUS.batch).endswith("n_words=40)")
    assert f"words=<{CORPUS.batch.words.size} int32>" in repr(CORPUS.batch)
    assert repr(VALUES[6]) == "Vocabulary(terms=<3,000 items>, core=300)"
    assert repr(VALUES[8]) == "Columns(5,000 rows of topic, shares)"
    assert repr(VALUES[9]).startswith("NumberSearch(29 numbers of topics from 1 to 29: ")
    assert repr(NumberSearch({})) == "NumberSearch(no topics: )"

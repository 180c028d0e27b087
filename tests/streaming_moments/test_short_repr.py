"""Public values print in one short line, however large their arrays are."""

import dataclasses

import numpy as np
import pytest

import streaming_moments
from streaming_moments import (
    CountingOptions,
    LengthHistogram,
    MomentStatistics,
    TopicOptions,
    Vocabulary,
    fit,
    pipelines,
    statistics,
    storage,
)
from streaming_moments.columns import Column, Columns
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import NumberSearch
from streaming_moments.models.rows import InMemory
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.storage.operations.windows import Window
from streaming_moments.synthetic import lda_corpus, markov_sequences, view_records
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table

CORPUS = lda_corpus(50, n_words=40, n_topics=2, mean_length=30)
BASIS = Basis.from_pilot(CORPUS.batch, 2)
STATISTICS = MomentStatistics.of(CORPUS.batch, BASIS)
MODEL = fit(STATISTICS, 2, alpha0=0.3, refine=0)
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
    MODEL,
    MODEL.described(),
]
# Estimators print as those of scikit-learn do, and these have lines of their own.
OWN = {"DateRange", "MomentStore", "RowBlock", "Shard", "Store", "Topics"}


@pytest.mark.parametrize("package", [streaming_moments, pipelines, statistics, storage])
def test_every_public_class_prints_in_one_line(package):
    public = {name: getattr(package, name) for name in dir(package) if name[0] != "_"}
    classes = {name: one for name, one in public.items() if dataclasses.is_dataclass(one)}
    long = [name for name, one in classes.items() if one.__repr__ is not short_repr]
    assert set(long) <= OWN


@pytest.mark.parametrize("value", VALUES, ids=lambda one: type(one).__name__)
def test_a_repr_is_a_short_line_without_arrays(value):
    shown = repr(value)
    assert shown.startswith(type(value).__name__)
    assert "\n" not in shown
    assert "array(" not in shown
    assert len(shown) <= 100


def test_a_repr_says_shapes_and_numbers():
    assert repr(CORPUS.batch).endswith("n_words=40)")
    assert f"words=<{CORPUS.batch.words.size} int32>" in repr(CORPUS.batch)
    assert repr(STATISTICS) == (
        "MomentStatistics(50 documents, 40 words, core 40, basis of 5 columns)"
    )
    assert repr(MODEL) == "TopicModel(2 topics, 40 words, 50 documents, alpha0 0.3)"
    assert repr(TopicOptions(topics=3)) == "TopicOptions(topics=3)"
    assert repr(CountingOptions(min_length=3)) == "CountingOptions(min_length=3)"
    assert repr(Window()) == "Window()"
    assert repr(VALUES[6]) == "Vocabulary(terms=<3,000 items>, core=300)"
    assert repr(VALUES[8]) == "Columns(5,000 rows of topic, shares)"
    assert repr(VALUES[9]).startswith("NumberSearch(29 numbers of topics from 1 to 29: ")
    assert repr(NumberSearch({})) == "NumberSearch(no topics: )"

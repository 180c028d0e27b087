"""What other packages give is taken, and what they take is given."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from streaming_moments import (
    Basis,
    MomentStatistics,
    TopicModel,
    Topics,
    create_store,
    fit,
    from_gensim,
)
from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.pipelines import PilotOptions
from streaming_moments.statistics.counts.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def store(tmp_path_factory, planted):
    pilot = PilotOptions(vocabulary_size=120, core=100, min_documents=2)
    url = str(tmp_path_factory.mktemp("bridges") / "store")
    made = create_store(url, planted, source="planted", max_topics=4, pilot=pilot)
    return made.update(planted, source="planted")


@pytest.fixture(scope="module")
def topics(store):
    return store.refit(4, name="four")


@pytest.mark.filterwarnings("ignore:.*not recognized as a component of a Zarr hierarchy")
def test_xarray_opens_segments_and_models(store, topics):
    loaded = store.snapshot.load()
    [segment] = store.snapshot.commit.segments
    with xr.open_zarr(f"{store.url}/segments/{segment.id}", consolidated=False) as opened:
        assert set(opened) >= {"word_counts", "pair_counts", "triple_sketch", "length_histogram"}
        assert opened.pair_counts.dims[:2] == opened.triple_sketch.dims[:2] == ("block", "row")
        counts = opened.word_counts.transpose("row", "block").values.ravel()
        assert np.array_equal(counts[: loaded.word_counts.size], loaded.word_counts)
    [model] = Path(store.url, "models").glob("**/topics")
    with xr.open_zarr(str(model.parent), consolidated=False) as opened:
        assert np.array_equal(opened.topics.values, topics.model.topics)


def test_frames_have_a_row_a_topic(topics):
    frame = topics.to_frame(3)
    assert list(frame.columns) == ["name", "share", "bar", "npmi", "umass", "words"]
    assert frame["words"][0].split() == topics.top_words(3)[0]
    assert frame.index.name == "topic"


def test_pyldavis_is_given_what_it_demands(topics, planted):
    """The checks of its `prepare`: shapes, distributions to 1e-10, no empty document."""
    given = topics.to_pyldavis([*planted[:50], "", "nothing known"])
    k, n = given["topic_term_dists"].shape
    assert (k, n) == (4, len(given["vocab"]))
    assert given["doc_topic_dists"].shape == (50, k)
    assert given["doc_lengths"].shape == (50,)
    assert given["term_frequency"].shape == (n,)
    assert np.allclose(given["topic_term_dists"].sum(axis=1), 1, atol=1e-10)
    assert np.allclose(given["doc_topic_dists"].sum(axis=1), 1, atol=1e-10)
    assert given["doc_lengths"].min() > 0
    assert given["term_frequency"].sum() == pytest.approx(given["doc_lengths"].sum())
    with pytest.raises(InvalidInput, match="none of 1 texts has a word"):
        topics.to_pyldavis(["..."])


def test_gensim_bags_give_the_counts_and_the_words():
    words = {7: "sea", 3: "law", 9: "ship", 1: "never"}
    bags = [[(7, 2), (3, 1)], [(9, 5)], []]
    batch, vocabulary = from_gensim(iter(bags), words)
    dense = batch.to_csr().toarray()
    for row, bag in zip(dense, bags, strict=True):
        assert {vocabulary.terms[i]: row[i] for i in np.flatnonzero(row)} == {
            words[word]: count for word, count in bag
        }
    assert batch.vocabulary == vocabulary.fingerprint
    topics = Topics(TopicModel.from_topics(np.eye(4, 2), np.array([0.5, 0.5])), vocabulary)
    assert topics.top_words(1) == [["ship"], ["sea"]]


@pytest.mark.parametrize("bags", [None, 3, "text", [[(5, 1)]], [[(7, 0)]], [[7]], [None]])
def test_bags_that_are_none_are_refused(bags):
    with pytest.raises(StreamingMomentsError) as caught:
        from_gensim(bags, {7: "sea"})
    assert "\n" not in str(caught.value)


def test_notebooks_show_tables(store, topics):
    values = [store, topics, topics.model, store.snapshot.load()]
    for shown in (value._repr_html_() for value in values):
        assert shown.startswith("<table><caption>")
        assert "array(" not in shown
    assert "<th>L1 error of words</th>" in topics._repr_html_()
    hostile = Topics(topics.model, topics.vocabulary)
    vocabulary = type(topics.vocabulary)(
        tuple(f"<script>{term}" for term in topics.vocabulary.terms), topics.vocabulary.core
    )
    assert "<script>" not in Topics(hostile.model, vocabulary)._repr_html_()


def test_statistics_of_other_counts_are_a_table_too():
    batch, _ = from_gensim([[(0, 3), (1, 1)], [(1, 2), (0, 1)]] * 9, {0: "a", 1: "b"})
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    assert "pair_counts" in statistics._repr_html_()
    shown = fit(statistics, 1)._repr_html_()
    assert "TopicModel(1 topic, " in shown
    # these functions compute no coherence
    assert "NPMI" not in shown
    shown = Topics(fit(statistics, 1), Vocabulary(("a", "b"), core=2))._repr_html_()
    assert "<th>share</th><th>words</th>" in shown

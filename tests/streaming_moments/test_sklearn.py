"""MomentTopics as scikit-learn knows estimators."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from streaming_moments import Basis, MomentStatistics, fit_by, polished
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.passes.stopping import MOST_PASSES
from streaming_moments.quality.coherences import npmi_coherence, umass_coherence
from streaming_moments.sklearn import MomentTopics
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.synthetic import lda_corpus, topic_error


@pytest.fixture(scope="module")
def corpus():
    return lda_corpus(n_documents=800, n_words=60, n_topics=3, alpha0=0.3, mean_length=40, seed=2)


@pytest.fixture(scope="module")
def counts(corpus):
    return corpus.batch.to_csr()


# as scikit-learn checks its own: the few rows that its checks draw are warned of, rightly
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([MomentTopics(), MomentTopics(alpha0=0.0, max_components=2)])
def test_scikit_learn_finds_nothing_amiss(estimator, check):
    check(estimator)


def test_topics_are_those_that_were_planted(corpus, counts):
    model = MomentTopics(3, alpha0=0.3).fit(counts)
    assert topic_error(model.components_.T, corpus.topics) < 0.25
    assert np.allclose(model.transform(counts).sum(axis=1), 1)
    assert model.score(counts) == -np.log(model.perplexity(counts))
    assert model.perplexity(counts) < counts.shape[1]
    assert list(model.get_feature_names_out()) == [f"momenttopics{i}" for i in range(3)]


def test_parts_and_sums_are_the_whole(counts):
    begun = MomentTopics(3).partial_fit(counts[:300])
    rest = begun.like().partial_fit(counts[300:])
    together = begun + rest
    begun.partial_fit(counts[300:])
    assert begun.statistics_ == together.statistics_
    assert np.array_equal(begun.components_, together.components_)
    with pytest.raises(ForeignStatistics, match="like"):
        begun + MomentTopics(3).fit(counts[300:])


def test_nothing_that_was_seen_is_nothing_added(counts):
    one = MomentTopics(3).fit(counts)
    assert np.array_equal((one + one.like()).components_, one.components_)


def test_pipelines_searches_frames_and_pickles(counts):
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)]
    texts = [
        " ".join(np.repeat(words, row)) for row in np.asarray(counts.toarray(), dtype=int)[:300]
    ]
    pipeline = make_pipeline(CountVectorizer(), MomentTopics(3)).fit(texts)
    assert pipeline.transform(texts[:2]).shape == (2, 3)
    search = GridSearchCV(pipeline, {"momenttopics__n_components": [2, 3]}, cv=2).fit(texts)
    assert search.best_params_["momenttopics__n_components"] in (2, 3)
    frames = clone(pipeline[1:]).set_output(transform="pandas").fit(counts)
    assert list(frames.transform(counts[:2]).columns) == [f"momenttopics{i}" for i in range(3)]
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.transform(texts), pipeline.transform(texts))


def test_fractions_are_counted_in_hundredths_or_refused(counts):
    halves = sp.csr_array(counts / 2)
    with pytest.warns(UserWarning, match="rounded to 100ths"):
        fitted = MomentTopics(3).fit(halves)
    assert fitted.scale_ == 100
    assert fitted.statistics_.length_histogram.n_tokens == 50 * counts.sum()
    with pytest.raises(InvalidInput, match="whole numbers"):
        MomentTopics(3).fit(counts).partial_fit(halves)


def test_documents_weigh_by_their_lengths_or_all_alike(counts):
    even, pooled = (MomentTopics(3, length_weights=how).fit(counts) for how in ("even", "pooled"))
    assert even.statistics_ == MomentTopics(3).fit(counts).statistics_
    assert not even.statistics_.basis.weights.is_pooled
    basis = Basis.from_pilot(CountBatch.from_csr(counts), 3, length_weights="pooled")
    assert pooled.statistics_ == MomentStatistics.of(CountBatch.from_csr(counts), basis)
    with pytest.raises(ForeignStatistics, match="count differently"):
        even + pooled
    with pytest.raises(InvalidInput, match='length weights are "zou"; choose even or pooled'):
        MomentTopics(3, length_weights="zou").fit(counts)


def test_topics_and_rounds_are_found_by_halves(counts):
    found = MomentTopics("auto", alpha0=0.3, refine="auto", max_components=5).fit(counts)
    expected = fit_by(found.statistics_, "auto", 0.3, refine="auto")
    assert found.components_.shape == (expected.n_topics, counts.shape[1])
    assert found.model_.refined == expected.refined
    assert np.array_equal(found.components_.T, expected.topics)
    # words may be fewer than the topics that a basis is made for by default
    assert MomentTopics("auto").fit(counts[:, :20]).components_.shape[1] == 20


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_components": "many"}, "n_components is 'many'; give a whole number, \"auto\" or"),
        ({"n_components": "3"}, "n_components is '3'; give a whole number"),
        ({"n_components": 2.5}, "n_components is 2.5"),
        ({"n_components": 0}, "^n_components is 0; give at least 1$"),
        ({"max_components": 0}, "^max_components is 0; give at least 1$"),
        ({"alpha0": None}, "alpha0 is None"),
        ({"method": "magic"}, "magic"),
        ({"random_state": -1}, "seed"),
        ({"refine": None}, "refine is None"),
        ({"max_components": "x"}, "max_components is 'x'"),
    ],
)
def test_parameters_that_are_none_are_named(parameters, said, counts):
    with pytest.raises(InvalidInput, match=said):
        MomentTopics(**parameters).fit(counts)


@pytest.mark.parametrize(
    "texts",
    [
        ["the sea", "the law"] * 9,
        np.array(["the sea", "the law"] * 9),
        pd.Series(["the sea", "the law"] * 9, index=range(5, 23)),
        pd.DataFrame({"text": ["the sea", "the law"] * 9}),
        [["the", "sea"], ["the", "law"]] * 9,
        "the sea",
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_texts_are_told_of_what_counts_words(texts, counts):
    said = r"put a CountVectorizer before it: make_pipeline\(CountVectorizer\(\), MomentTopics\("
    fitted = MomentTopics(3).fit(counts)
    for call in (MomentTopics(2).fit, MomentTopics(2).partial_fit, fitted.transform, fitted.score):
        with pytest.raises(InvalidInput, match=f"X holds texts, .*{said}"):
            call(texts)


def test_documents_that_tell_no_topics_apart_say_so():
    with pytest.raises(NotIdentifiable):
        MomentTopics(2).fit(np.eye(4, dtype=int))


def test_documents_without_two_words_are_named():
    with pytest.raises(NotIdentifiable, match="none of the 50 documents of X has two words"):
        MomentTopics(2).fit(np.zeros((50, 4), dtype=int))


def test_frames_have_the_words_of_topics(counts):
    frame = pd.DataFrame(counts.toarray()).add_prefix("word_")
    topics = MomentTopics(2, alpha0=0.3).fit(frame)
    shown = topics.to_frame(3)
    assert shown.words.tolist() == [" ".join(words) for words in topics.top_words(3)]
    assert "bar" in shown
    assert topics.model_.to_frame(frame.columns, 3).equals(shown)
    assert topics.to_table(3)["words"].to_pylist() == shown.words.tolist()
    assert "words" not in topics.model_.to_frame()
    with pytest.raises(InvalidInput, match="1 name given for .* words; give a name for each word"):
        topics.model_.to_frame(["sea"])


def test_polishing_is_of_documents_that_are_all_there(counts):
    plain = MomentTopics(3, alpha0=1.0, refine=2)
    near = clone(plain).set_params(polish=2).fit(counts)
    expected = polished(plain.fit(counts).model_, CountBatch.from_csr(counts), 2)
    assert np.array_equal(near.components_, expected.topics.T)
    assert near.model_.polishing.passes == 2
    for asked in (lambda: near.partial_fit(counts), lambda: near + near):
        with pytest.raises(InvalidInput, match="polish is 2, and passes need all documents"):
            asked()


def test_only_this_module_imports_scikit_learn():
    script = """
import sys, streaming_moments as sm
from streaming_moments.lazy_imports import exports_of
exports = exports_of("streaming_moments")
assert set(exports) == set(sm.__all__) <= set(dir(sm))
[getattr(sm, name) for name, place in exports.items() if ".sklearn." not in place]
assert not [name for name in sys.modules if name.split('.')[0] == 'sklearn']
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_the_warning_of_fractional_counts_names_the_line_of_the_caller(counts):
    for method in (MomentTopics(3, alpha0=0.3).fit, MomentTopics(3, alpha0=0.3).partial_fit):
        with pytest.warns(UserWarning, match="counts are fractional") as found:
            method(counts / 2)
        assert found[0].filename == __file__


def test_passes_are_made_until_one_changes_little():
    corpus = lda_corpus(2000, 500, 5, 0.3, 80, seed=3)
    X = corpus.batch.to_csr()
    plain, better = (MomentTopics(5, polish=polish).fit(X) for polish in (0, "auto"))
    note = better.model_.polishing
    assert 1 <= note.passes < MOST_PASSES
    assert better.model_.alpha0 == plain.model_.alpha0
    errors = [topic_error(one.model_.topics, corpus.topics) for one in (plain, better)]
    assert errors[1] <= errors[0]
    with pytest.raises(InvalidInput, match="polish is auto, and passes need all documents again"):
        MomentTopics(5, polish="auto").partial_fit(X)
    with pytest.raises(InvalidInput, match="polish is 'some'; give a whole number or \"auto\""):
        MomentTopics(5, polish="some").fit(X)


def test_words_are_told_by_name_number_and_ranking():
    rows = np.array([[6, 2, 0, 0, 4], [5, 3, 0, 0, 4], [0, 0, 5, 2, 5], [0, 0, 4, 3, 6]] * 9)
    names = ["law", "tax", "sea", "ship", "the"]
    model = MomentTopics(2, alpha0=0).fit(rows)
    assert sorted(map(tuple, model.top_words(1, names))) == [("law",), ("sea",)]
    likeliest = {words[0] for words in model.top_words(1, names, by="probability")}
    assert "the" in likeliest
    assert set(model.top_words(1)[0]) <= {"0", "1", "2", "3", "4"}
    framed = MomentTopics(2, alpha0=0).fit(pd.DataFrame(rows, columns=names))
    assert framed.top_words(2) == model.top_words(2, names)
    for wrong, said in (
        ({"number": 0}, "the number of words is 0; give"),
        ({"by": "beauty"}, "ranked by 'beauty'; choose relevance, probability, lift"),
        ({"names": names[:3]}, "3 names given for 5 columns"),
    ):
        with pytest.raises(InvalidInput, match=said):
            model.top_words(**wrong)
    with pytest.raises(NotFittedError):
        MomentTopics(2).top_words()


@pytest.mark.parametrize("polish", [0, 2])
def test_the_model_has_the_coherence_of_its_topics_in_the_documents(counts, polish):
    model = MomentTopics(3, alpha0=0.3, polish=polish).fit(counts).model_
    there = (counts.toarray() > 0).astype(int)
    together, number = there.T @ there, len(there)
    args = model.topics, there.sum(axis=0), together
    assert np.array_equal(model.npmi, npmi_coherence(*args, number))
    assert np.array_equal(model.umass, umass_coherence(*args, 10))
    assert "<th>NPMI</th>" in model._repr_html_()

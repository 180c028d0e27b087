"""What status and topics say, against direct computations."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from streaming_moments import LengthHistogram, TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.status import few_documents, status_of
from streaming_moments.pipelines.reports.tables import model_scores, topic_lines
from streaming_moments.printing.remedies import of_commands
from streaming_moments.statistics.counts.lengths import POOLED, LengthWeights
from streaming_moments.statistics.counts.lengths.bounds import error_radius
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

EVEN = LengthWeights(np.array([2, 1]))  # too even to help
WORDS = ["hill", "lake", "moor", "rock", "sand", "tree"]


@pytest.fixture
def counted(tmp_path, embedded):
    """A store of documents of given lengths, in words that all are known."""

    def call(lengths, passage_words=None, ids=False, weights="even"):
        rng = np.random.default_rng(0)
        drawn = [rng.integers(0, len(WORDS), length) for length in lengths]
        if ids:
            shard = tmp_path / "a.ldac"
            unique = [np.unique(words, return_counts=True) for words in drawn]
            entries = [" ".join(f"{w}:{c}" for w, c in zip(*one, strict=True)) for one in unique]
            lines = [f"{len(one[0])} {text}" for one, text in zip(unique, entries, strict=True)]
        else:
            shard = tmp_path / "a.jsonl"
            texts = [" ".join(WORDS[word] for word in words) for words in drawn]
            lines = [json.dumps({"text": text}) for text in texts]
        shard.write_text("\n".join(lines) + "\n")
        options = PilotOptions(
            core=6, max_topics=2, min_documents=1, max_document_fraction=1, length_weights=weights
        )
        policy = None if ids else TokenPolicy(passage_words=passage_words)
        listed = list_shards([str(shard)])
        folder = str(tmp_path / "store")
        made = create(folder, listed, ShardFormat(), policy, options, Run(embedded))
        return update(made, listed, Run(embedded)).store

    return call


@pytest.mark.parametrize(
    ("weights", "effective", "remedy"),
    [
        ("pooled", 1.0, "`rebase --length-weights even`"),
        ("even", 1.1, "count more documents of their length"),
    ],
)
def test_status_shows_the_radius_of_the_lengths_and_warns_of_few_long_documents(
    run, counted, weights, effective, remedy
):
    lengths = 40 * [5] + [60]
    store = counted(lengths, weights=weights)
    shown = json.loads(run("status", store.url, "--json")[1])
    for order in (2, 3):
        radius = error_radius(LengthHistogram.of(lengths, store.basis.weights), 0.05, order)
        assert shown[f"error_radius_m{order}"] == pytest.approx(radius)
    assert shown["error_delta"] == 0.05
    assert shown["warning"].startswith(f"{effective} effective documents are few, below 1,000")
    assert "among 41" in shown["warning"]
    assert shown["warning"].endswith(remedy)
    out = run("status", store.url)[1]
    assert f"warning: {shown['warning']}" in out
    assert "Theorem" not in out
    detailed = run("status", store.url, "--verbose")[1]
    assert f"M3 {shown['error_radius_m3']:.2g} (Theorem 2" in detailed


@pytest.mark.parametrize(
    ("lengths", "weights", "policy", "told"),
    [
        (900 * [2] + 40 * [3] + [9], POOLED, TokenPolicy(), "short (41 have three"),
        (900 * [2] + [3], POOLED, None, "short (1 has three"),
        (80 * [4], POOLED, TokenPolicy(), "are rough; count more documents"),
        (80 * [400], POOLED, TokenPolicy(), "documents, or cut long documents by a new store with"),
        (80 * [400], POOLED, None, "or token ids of passages instead of whole documents"),
        (80 * [4], POOLED, None, "are rough; count more documents"),
        (80 * [4] + [400], POOLED, TokenPolicy(), "`rebase --length-weights even`"),
        (80 * [4] + [400], EVEN, TokenPolicy(), "`create --passage-words 200`"),
        (80 * [4] + [400], EVEN, TokenPolicy(passage_words=9), "are cut into passages already)"),
        (1000 * [4], POOLED, TokenPolicy(), ""),
    ],
)
def test_the_warning_of_few_documents_names_the_cause(lengths, weights, policy, told):
    histogram = LengthHistogram.of(lengths, weights)
    store = SimpleNamespace(length_histogram=lambda: histogram, policy=policy)
    said = few_documents(store, of_commands)
    assert told in said
    assert said.endswith(told) or "short" in told or "cut" in told


def test_status_answers_first_and_ends_with_what_to_do(run, counted):
    store = counted(1000 * [4])
    said = run("status", store.url)[1].splitlines()
    counted_at = json.loads(run("status", store.url, "--json")[1])["counted_at"]
    assert counted_at == store.commit.time
    assert said[0].startswith(f"{store.url} holds 1,000 documents, last counted {counted_at[:10]}")
    assert said[-1] == f"Next: streaming-moments refit {store.url}"
    assert run("refit", store.url, "--topics", "1", "--name", "one")[0] == 0
    said = run("status", store.url)[1].splitlines()
    assert said[-1] == f"Next: streaming-moments topics {store.url}"
    # the latest commit saved a model
    assert json.loads(run("status", store.url, "--json")[1])["counted_at"] == counted_at
    # of a version that has a successor, nothing is suggested
    empty = run("status", store.url, "--version", "0")[1].splitlines()
    assert (empty[0], "Next" in empty[-1]) == (f"{store.url} holds 0 documents.", False)


def test_the_warning_about_token_ids_has_a_remedy_that_their_store_allows(counted):
    warning = status_of(counted(30 * [201], ids=True)).warning
    assert warning.endswith(
        "count more documents, or token ids of passages instead of whole documents"
    )


def test_enough_documents_are_no_warning(run, counted):
    store = counted(1000 * [4])
    assert status_of(store).effective_documents == pytest.approx(1000)
    assert status_of(store).warning == ""
    assert "warning" not in run("status", store.url)[1]


def test_documents_without_three_words_have_no_radius_of_the_third_moment(run, counted):
    store = counted(20 * [2])
    shown = status_of(store)
    assert shown.state_bytes == store.load().nbytes
    assert shown.error_radius_m2 > 0
    assert shown.error_radius_m3 is None
    assert "M3 unknown" in run("status", store.url, "--verbose")[1]
    empty = status_of(store.at(0))
    assert (empty.error_radius_m2, empty.error_radius_m3, empty.warning) == (None, None, "")


def test_words_are_ranked_by_the_relevance_asked_for(run, counted):
    topics = np.array([[0.6, 0.5], [0.3, 0.1], [0.1, 0.4]])
    model = TopicModel.from_topics(topics, np.array([0.5, 0.5]))
    vocabulary = Vocabulary(("sea", "ship", "law"), core=3)
    ranked = [[line.words for line in topic_lines(model, vocabulary, 2, w)] for w in (1.0, 0.0)]
    assert ranked[0] == [("sea", "ship"), ("sea", "law")]
    assert ranked[1] == [("ship", "sea"), ("law", "sea")]

    store = counted(200 * [12])
    assert run("refit", store.url, "--topics", "1", "--name", "one")[0] == 0
    found = json.loads(run("topics", store.url, "--relevance", "1", "--json")[1])
    probabilities = store.latest().load_model("one").topics[:, 0]
    expected = [store.vocabulary.terms[word] for word in np.argsort(-probabilities)]
    assert found["topics"][0]["words"] == expected
    assert (found["relevance"], found["method"]) == (1.0, "joint")
    [npmi] = [topic["npmi"] for topic in found["topics"]]
    assert found["npmi"] == pytest.approx(npmi)
    assert found["diversity"] == 1.0
    out = run("topics", store.url, "--relevance", "0.25")[1]
    assert "lambda 0.25" in out
    assert f"mean NPMI {npmi:.3f}" in out
    code, _, err = run("topics", store.url, "--relevance", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "give a number from 0 to 1" in err


def test_scores_of_a_model_are_means_over_its_topics():
    topics = np.kron(np.eye(2), np.full((30, 1), 1 / 30))
    model = TopicModel.from_topics(topics, np.array([0.5, 0.5]))
    assert model_scores(model) == {"npmi": None, "umass": None, "diversity": 1.0}
    known = model.with_coherence(np.array([-4.0, -2.0]), np.array([0.1, 0.3]))
    assert model_scores(known) == {"npmi": pytest.approx(0.2), "umass": -3.0, "diversity": 1.0}


def test_topics_say_how_far_they_can_be_trusted(run, counted):
    store = counted(200 * [12])
    assert run("refit", store.url, "--topics", "1", "--name", "one")[0] == 0
    model = store.latest().load_model("one")
    shown = json.loads(run("topics", store.url, "--json")[1])
    assert shown["error_bar"] == pytest.approx(model.topic_bars.tolist())
    assert shown["held_out"]["mean"] == pytest.approx(model.held_out.mean)
    [topic] = shown["topics"]
    assert len(topic["bars"]) == len(topic["probabilities"]) == len(topic["words"])
    first = store.vocabulary.index[topic["words"][0]]
    assert topic["probabilities"][0] == pytest.approx(model.topics[first, 0])
    assert topic["bars"][0] == pytest.approx(model.word_bars[first, 0])
    assert "error bar" in run("topics", store.url)[1]

"""Each door counts and reads texts by the tokeniser of the store: of one's own, or of a library."""

import json
import pickle

import numpy as np
import own_words
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from streaming_moments import MomentTopics, open_store
from streaming_moments.pipelines.reports import outside_words
from streaming_moments.storage.counting import TokenPolicy

# who reads them by default finds other words: signs are of words, or no blanks are between them
OWN = ["c++ c# code c++ tests", "sea-ship 1492 port sea-ship", "tax/law court tax/law vote"]
CHINESE = ["法院讨论税法和政府的税法", "大海上的船在港口等待大船", "医生在医院照顾病人和医生"]


class Place:
    """Texts that a night has counted, and the store and model that it made."""

    def __init__(self, folder, tokeniser, texts):
        self.texts, self.tokeniser = texts * 40, tokeniser
        self.shards, self.url = folder / "a.txt", str(folder / "store")
        self.shards.write_text("\n".join(self.texts), encoding="utf-8")
        self.config = folder / "night.toml"
        sizes = "min_documents = 2\nmax_topics = 3\nmin_length = 1\nmax_document_fraction = 1.0"
        self.config.write_text(
            f"store = {json.dumps(self.url)}\nshards = [{json.dumps(str(self.shards))}]\n"
            f"output = {json.dumps(str(folder / 'reports'))}\n"
            f"[create]\ntokeniser = {json.dumps(tokeniser)}\n{sizes}\n"
            "[refit]\ntopics = 3\nalpha0 = 0.1\n",
            encoding="utf-8",
        )

    @property
    def tokens(self):
        return [*map(open_store(self.url).snapshot.policy.tokens, self.texts)]


@pytest.fixture(
    scope="module", params=[("own_words:by_blanks", OWN, ""), ("chinese", CHINESE, "rjieba")]
)
def place(request, tmp_path_factory, embedded, few_blocks):
    tokeniser, texts, package = request.param
    if package:
        pytest.importorskip(package)
    return Place(tmp_path_factory.mktemp("doors"), tokeniser, texts)


def test_each_door_has_the_words_of_the_store(place, run, calling_store, tmp_path, monkeypatch):
    monkeypatch.setattr(outside_words, "SLOW", 0)
    code, _, err = run("nightly", place.config)
    assert code == 0, err
    store = open_store(place.url)
    assert store.snapshot.policy.tokeniser == place.tokeniser
    known = {*store.snapshot.vocabulary.terms}
    assert {own_words.by_blanks(OWN[0])[0], "税法"} & known
    sizes = [sum(word in known for word in text) for text in place.tokens]
    assert store.snapshot.commit.tokens == sum(sizes)
    report = json.loads((place.config.parent / "reports" / "latest.json").read_text())
    (told,) = (step for step in report["steps"] if step["step"] == "update")
    assert told["values"]["tokens"] == sum(sizes)
    assert f"Tokeniser {place.tokeniser} took " in str(told["values"]["told"])
    # from Python, by the service and by the command, texts are in the same topic
    read = store.topics().read(place.texts[:3])
    found = read.to_frame()
    assert found["length"].tolist() == sizes[:3]
    assert found["topic"].nunique() == 3
    with calling_store(place.url) as caller:
        answer = caller.post("/v1/transform", {"texts": place.texts[:3]}).json()
    assert [one["known"] for one in answer["texts"]] == sizes[:3]
    shares = [one["proportions"] for one in answer["texts"]]
    assert np.argmax(shares, axis=1).tolist() == found["topic"].tolist()
    code, _, err = run("transform", place.url, place.shards, "--output", tmp_path / "out")
    assert code == 0, err
    (written,) = (tmp_path / "out").glob("**/*.parquet")
    assert pq.read_metadata(written).num_rows == len(place.texts)


def test_an_estimator_takes_the_analyser_of_a_policy(place):
    policy = TokenPolicy.for_languages(["none"], 1, tokeniser=place.tokeniser)
    pipeline = make_pipeline(CountVectorizer(analyzer=policy.tokens), MomentTopics(3, alpha0=0.1))
    found = pipeline.fit(place.texts).transform(place.texts[:3]).argmax(axis=1)
    assert len({*found.tolist()}) == 3
    again = pickle.loads(pickle.dumps(pipeline))
    assert again[0].vocabulary_ == pipeline[0].vocabulary_
    assert np.array_equal(again.transform(place.texts), pipeline.transform(place.texts))

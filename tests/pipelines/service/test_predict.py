"""What models of each kind say of documents, beside what they say of their rows in memory."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.models.mixtures.gaussian_mixture import log_sums
from streaming_moments.models.reading.inference import posteriors
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.service import published as module
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.service.predict import ANSWERS, Answering
from streaming_moments.pipelines.service.published import Published, answering
from streaming_moments.pipelines.service.record_schema import shape_of
from streaming_moments.storage.counting.symbols import sequences
from streaming_moments.storage.formats import encoded
from streaming_moments.storage.store.store import MomentStore

TODAY = date(2026, 11, 23)


@pytest.fixture
def published(archived):
    """The model of a store as 0.2.0 wrote it."""

    def of(name, model=None):
        store = MomentStore.open(str(archived(name)))
        if model is None:
            return Published.of(store, "published")
        return Answering.of(store, store.load_any_model(model))

    return of


def read(published, *records):
    """What is said of records as they are sent."""
    asked = published if isinstance(published, Answering) else published.answering
    shape = shape_of(asked.store, LimitsSection())
    lines = [shape.line(one, place, TODAY)[1] for place, one in enumerate(records)]
    return published.read(b"".join(lines))


def test_rows_of_numbers_have_components_and_factors(published, archived):
    found = published("vectors")
    rows = np.array([[0.5, 1.0, -2.0], [3.0, 2.0, 1.0]])
    told = read(found, *({"vector": row.tolist()} for row in rows))
    # a store rounds rows to its grid
    densities = found.model.log_densities(rows)
    assert [one.proportions for one in told] == [
        pytest.approx(row, abs=0.1) for row in posteriors(densities).tolist()
    ]
    assert [one.log_likelihood for one in told] == pytest.approx(log_sums(densities), abs=0.5)
    assert [one.words for one in told] == [None, None]
    fourth = published("vectors_fourth")
    names = [one.name for one in shape_of(fourth.answering.store, LimitsSection()).counted]
    (told,) = read(fourth, dict.fromkeys(names, 1.0))
    assert len(told.factors) == fourth.model.n_topics


def test_a_row_of_a_table_is_completed(published):
    found = published("tables_4")
    row = {"c0": "v0", "c1": None, "c2": "v1", "c3": "v0"}
    (told,) = read(found, row)
    assert {name: told.completed[name] for name in ("c0", "c2", "c3")} == {
        "c0": "v0",
        "c2": "v1",
        "c3": "v0",
    }
    assert told.completed["c1"] in found.model.table.categories[1]
    assert [one == 1 for one in told.probabilities] == [True, False, True, True]
    assert told.probabilities == tuple(round(one, 6) for one in told.probabilities)
    assert told.log_likelihood < 0


def test_records_of_views_have_a_state(published):
    found = published("views")
    told = read(found, {"a": "a5", "b": "b0", "c": "c1"}, {"a": "a6", "b": "b1", "c": "none"})
    assert [one.known for one in told] == [3, 2]
    assert [int(np.argmax(one.proportions)) for one in told] == [0, 1]
    assert [sum(one.proportions) for one in told] == pytest.approx([1, 1], abs=1e-5)


def test_a_sequence_is_decoded_also_where_it_comes_in_pieces(published, monkeypatch):
    found = published("sequences")
    texts = "bbbbbfbbbb" * 3, "f"
    whole = read(found, *({"text": text} for text in texts))
    assert [len(one.states) for one in whole] == [30, 1]
    assert [len(one.probabilities) for one in whole] == [30, 1]
    assert all(0.4 < one <= 1 for one in whole[0].probabilities)
    assert whole[0].log_likelihood < whole[1].log_likelihood < 0
    assert whole[0].states[0] == 0
    assert whole[0].probabilities == tuple(round(one, 6) for one in whole[0].probabilities)
    pieces, read_by = [], type(found.model).read
    monkeypatch.setattr(sequences, "PIECE", 8)
    monkeypatch.setattr(
        type(found.model),
        "read",
        lambda self, batch: pieces.append(read_by(self, batch)) or pieces[-1],
    )
    cut = read(found, *({"text": text} for text in texts))
    assert len(pieces) > 3
    assert {one.dtype.kind for one in map(np.array, (cut[0].states, whole[0].states))} == {"i"}
    assert [len(one.states) for one in cut] == [len(one.probabilities) for one in cut] == [30, 1]
    likely = np.concatenate([one["log_likelihood"].array for one in pieces])
    assert [one.log_likelihood for one in cut] == pytest.approx([likely[:-1].sum(), likely[-1]])


def test_an_edge_has_memberships_of_nodes_that_are_known(published):
    found = published("edges")
    told = read(found, {"source": "n17", "target": "none"})[0].memberships
    places = found.answering.store.foundation.nodes.index
    row = found.model.memberships[places["n17"]].round(6)
    assert told == {"n17": pytest.approx(tuple(row), abs=1e-9), "none": None}


@pytest.mark.parametrize("name", ["counts_ids", "neighbours"])
def test_token_ids_have_topics_and_say_how_many_are_known(published, name):
    found = published(name)

    def record(ids):
        counts = {"counts": [1] * len(ids)} if name == "counts_ids" else {}
        return {"ids": ids, **counts}

    unknown = list(range(900_000, 900_005))
    told = read(found, record([0, 1, 3, 2]), record([0, *unknown[:4]]), record([0, *unknown]))
    if name == "counts_ids":
        told += read(found, record([]))
        assert (told[3].words, told[3].known, told[3].foreign) == (0, 0, False)
    assert [(one.words, one.known, one.foreign) for one in told[:3]] == [
        (4, 4, False),
        (5, 1, False),
        (6, 1, True),
    ]
    assert [sum(one.proportions) for one in told[:3]] == pytest.approx([1] * 3, abs=1e-5)


def test_models_of_words_say_topics_of_texts_and_no_others(published, archived):
    found = published("counts_1", "poisson")
    assert len(read(found, {"text": "wa wb"})[0].proportions) == 2
    store = MomentStore.open(str(archived("counts_3")))
    other = Answering.of(store, store.load_any_model("mean"))
    if other.model.name not in ANSWERS:
        with pytest.raises(InvalidInput, match="say nothing of documents; those that do are lda"):
            other.read(b"{}\n")


def test_texts_are_inferred_and_their_words_speak_for_topics(published):
    found = published("night")
    terms = found.index.vocabulary.terms
    text = f"{terms[0]} {terms[1]} {terms[1]} zz"
    (told,) = found.infer([text])
    assert (told.words, told.known, told.foreign) == (4, 3, False)
    foreign = [found.infer([f"{terms[0]} " + "zz " * outside])[0].foreign for outside in (4, 5)]
    assert foreign == [False, True]
    rows = found.model.transform(found.index.counted(encoded([text])).batch)
    assert told.proportions == tuple(rows[0].round(6).tolist())
    shares = [share for one in found.infer(terms[:5]) for share in one.proportions]
    assert shares == [round(share, 6) for share in shares]
    words = found.words_for(text, told.proportions, 5)
    assert len(words) == 2
    assert {one for topic in words for one in topic} <= {terms[0], terms[1]}
    # a word whose count is shared as the proportions and probabilities say
    topics = found.model.topics
    parts = {
        term: count * topics[place] * told.proportions
        for place, (term, count) in enumerate(((terms[0], 1), (terms[1], 2)))
    }
    for topic in range(2):
        sure = [
            (term, count * part[topic] / part.sum())
            for (term, part), count in zip(parts.items(), (1, 2), strict=True)
        ]
        order = sorted(sure, key=lambda one: -one[1])
        assert words[topic] == tuple(term for term, share in order if share >= 0.5)
        assert found.words_for(text, told.proportions, 1)[topic] == words[topic][:1]
        assert found.words_for(text, told.proportions, 0)[topic] == ()
    assert found.words_for("zz", told.proportions, 5) == [(), ()]
    one = [1.0, 0.0]
    assert found.words_for(text, one, 5) == [(terms[1], terms[0]), ()]
    # half of it is enough
    assert found.words_for(terms[0], topics[0][::-1], 5) == [(terms[0],), (terms[0],)]


def test_texts_are_cut_into_words_as_the_lineage_of_the_model_did(archived, monkeypatch):
    store = MomentStore.open(str(archived("night")))
    policy = replace(store.policy, min_length=store.policy.min_length + 1)
    text = " ".join(store.vocabulary.terms[:3])
    for other, words in ((policy, 0), (store.policy, 3), (None, 3)):
        monkeypatch.setattr(
            module, "store_for", lambda *told, other=other: SimpleNamespace(policy=other)
        )
        (told,) = Published.of(store, "published").infer([text])
        assert told.words == words


def test_a_model_of_ids_says_nothing_of_texts(published):
    found = published("counts_ids")
    assert isinstance(found.model, TopicModel)
    with pytest.raises(InvalidInput, match="has no topics of texts"):
        found.infer(["a"])


def test_which_model_answers(archived):
    store = MomentStore.open(str(archived("night")))
    assert answering(store, "published") == "night-v3"
    assert answering(store, "none") == "night-v3", "the latest"
    assert answering(store.at(1), "published") in ("night-v1", None)
    assert answering(store.at(0), "published") is None
    assert Published.of(store.at(0), "published") is None
    found = Published.of(store, "published")
    assert (found.name, found.version, found.reference) == (
        "night-v3",
        4,
        store.models["night-v3"],
    )
    assert found.answering is None


def test_a_model_of_other_documents_says_nothing_of_texts(published):
    found = published("vectors")
    with pytest.raises(InvalidInput, match="has no topics of texts"):
        found.infer(["a"])
    assert found.words_for("a", (0.5, 0.5), 3) == [(), ()]
    found.warm()
    assert found.index is None
    with pytest.raises(InvalidInput, match="has no topics"):
        assert found._topical

"""A store with days, words that came later and a fitted model, written before there were kinds.

It was written once, by the commands of the version before statistics had a foundation: `create`,
`update` of two days, `refit`, `tag`, a grown vocabulary, `update` of a third day, `forget` of the
first. Every later version reads, verifies and writes on it.
"""

import hashlib
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from streaming_moments.models import TopicModel, fit_by
from streaming_moments.storage import MomentStore, Window, windowed
from streaming_moments.storage.operations.history import tag

STORE = Path(__file__).parent / "v1_days"
WORDS = ("judge", "sea", "ship", "court", "law", "storm", "steam")
SUMS = "6134e9b6fc0a7eb7fc277595b51201d747d69f52452b9b1c6f56d81deed2a267"


@pytest.fixture
def store(tmp_path):
    shutil.copytree(STORE, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


def test_it_is_read_and_sound(store):
    assert (store.version, store.kind, store.vocabulary.terms) == (7, "counts", WORDS)
    assert store.commit.lineage.kind is None
    assert store.verify() == []
    held = store.load()
    arrays = b"".join(array.tobytes() for array in held.arrays().values())
    assert hashlib.sha256(arrays).hexdigest() == SUMS
    assert held.word_counts.tolist() == [28, 29, 21, 33, 20, 26, 35]
    assert [first for first, _ in held.later] == [6]
    names = [record.url.split("/")[-2] for record in store.ledger()]
    assert names == ["2026-11-02", "2026-11-03"]


def test_its_model_is_one_of_topics(store):
    model = store.load_model("published")
    assert isinstance(model, TopicModel)
    assert (model.method, model.alpha0, model.documents) == ("joint", 0.3, 24)
    np.testing.assert_allclose(model.weights, [0.5000283803253004, 0.4999716196746997], rtol=1e-15)
    np.testing.assert_allclose(model.topics[0], [0.383603, 0], atol=1e-6)


def test_it_is_fitted_and_written_on(store):
    second = windowed(store, Window(date(2026, 11, 2), date(2026, 11, 2)))
    assert second.row_lengths().whole.n_documents == 12
    model = fit_by(store.load(), 2, 0.3)
    written = tag(store.save_model("anew", model), "published", "anew")
    assert written.load_model("published").topics.tobytes() == model.topics.tobytes()
    assert written.verify() == []

"""Stores of views, sequences and tables from Python: the same bits as from files, and typed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import create_store, open_store
from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains import HiddenMarkovModel
from streaming_moments.models.factors import IndependentFactors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.three_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions
from streaming_moments.synthetic.hidden import markov_sequences
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets

FEW = PilotOptions(min_documents=1)
ALONE = CountingOptions(date_pattern="none", halves=False)
STEPS = markov_sequences(80, length=30, n_symbols=6, k=2, seed=1).batch.symbols.reshape(80, 30)


def rows():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 400)
    near = rng.random((400, 3)) < 0.85
    codes = np.where(near, hidden[:, None], 1 - hidden[:, None])
    frame = pd.DataFrame(
        {name: ["xy"[one] for one in own] for name, own in zip("abc", codes.T, strict=True)}
    )
    frame.loc[3, "b"] = None
    frame["n"] = codes[:, 0].astype(float)
    frame.loc[5, "n"] = np.nan
    return frame


SEQUENCES = {
    "lists": lambda: STEPS.tolist(),
    "arrays": lambda: list(STEPS),
    "pairs": lambda: [(number, own.tolist()) for number, own in enumerate(STEPS)],
    "mappings": lambda: [{"steps": own} for own in STEPS],
    "a frame": lambda: pd.DataFrame({"steps": STEPS.tolist()}),
    "a series": lambda: pd.Series(STEPS.tolist()),
    "a table": lambda: pa.table({"steps": STEPS.tolist()}),
}


@pytest.fixture(scope="module")
def empty():
    """A store of sequences of whole numbers, in which nothing is counted, and its statistics."""
    url = "memory://sequences-from-python"
    return create_store(
        url,
        SEQUENCES["lists"](),
        shape=KindOptions("sequences", "steps"),
        counting=ALONE,
        pilot=FEW,
    )


def test_sequences_of_any_collection_are_counted_as_from_a_file(empty, tmp_path):
    pq.write_table(pa.table({"steps": STEPS.tolist()}), tmp_path / "steps.parquet")
    store = empty.update(str(tmp_path / "steps.parquet"))
    expected, symbols = store.snapshot.load(), STEPS.size
    store = store.forget(str(tmp_path / "steps.parquet"), allow_again=True)
    for name, given in SEQUENCES.items():
        store = store.update(given(), source="all")
        assert store.snapshot.load() == expected, name
        assert store.documents == 80
        assert store.snapshot.commit.tokens == symbols
        assert store.update(given(), source="all").version == store.version
        store = store.forget(given(), source="all", allow_again=True)
    assert store.documents == 0


def test_a_model_of_sequences_is_fitted_kept_and_read(empty, tmp_path):
    store = empty.update(SEQUENCES["lists"](), source="fitted")
    model = store.refit_as(HiddenMarkovModel, n_topics=2, refine=3, name="first")
    assert isinstance(model, HiddenMarkovModel)
    assert model.documents == 80
    kept = open_store(store.url)
    assert isinstance(kept.model(), HiddenMarkovModel)
    assert np.array_equal(kept.model("first").emission, model.emission)
    written = kept.transform(SEQUENCES["a frame"](), str(tmp_path / "out"), source="read")
    assert (written.sequences, written.symbols) == (80, STEPS.size)
    assert len(pq.read_table(written.files[0])) == 80
    assert "Store" in repr(kept)
    assert "words" in kept._repr_html_()
    for call, said in (
        (lambda: store.refit(2), "refit_as(HiddenMarkovModel"),
        (lambda: store.refit_as(HiddenMarkovModel, n_topics="some"), "n_topics is 'some'"),
        (lambda: store.refit_as(HiddenMarkovModel, n_topics="auto"), "has no halves"),
        (lambda: store.select([2]), "select_as(HiddenMarkovModel"),
        (
            lambda: store.refit_as(TopicModel, n_topics=2),
            "`store.refit_as(HiddenMarkovModel, ...)`",
        ),
        (lambda: store.refit_as(HiddenMarkovModel), "needs a value for 'n_topics'"),
        (lambda: store.refit_as(HiddenMarkovModel, n_topics=2, alpha0=1.0), "no option 'alpha0'"),
        (lambda: store.select_as(HiddenMarkovModel, [2]), "has no halves"),
        (lambda: kept.transform([[1]], "out", source="x", passages=True), "leave out passages"),
        (lambda: store.update(["law"], source="texts"), "give a list"),
        (lambda: store.update([{"other": [1]}], source="keys"), "has no 'steps'"),
        (lambda: store.update([[object()]], source="objects"), "of type object"),
    ):
        with pytest.raises((InvalidInput, ShardError)) as refused:
            call()
        assert said in str(refused.value)


def test_views_of_a_frame_are_counted_as_from_a_file(tmp_path):
    frame = rows()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    shape = KindOptions("views", "a,b,c")
    counting = CountingOptions(date_pattern="none")
    store = create_store(
        "memory://views-from-python", frame, shape=shape, counting=counting, pilot=FEW
    )
    store = store.update(str(tmp_path / "rows.csv"))
    totals, file = store.snapshot.totals(), store.snapshot.load()
    store = store.forget(str(tmp_path / "rows.csv")).update(frame, source="frame")
    assert store.snapshot.totals().triples == totals.triples
    assert np.array_equal(store.snapshot.load().sums["triple_sketch"], file.sums["triple_sketch"])
    model = store.refit_as(MultiViewMixture, n_topics=2, name="first")
    assert model.columns == ("a", "b", "c")
    assert model.n_missing == 1
    selection = store.select_as(MultiViewMixture, [1, 2])
    assert selection.taken.n_topics == 2
    named = store.label(0, "the larger")
    assert named.snapshot.models["first"].labels == {0: "the larger"}
    assert "2 states of 400 documents" in named.page(str(tmp_path / "page.html"))
    written = store.transform(frame, str(tmp_path / "out"), source="frame")
    assert written.documents == 400


def test_tables_of_a_frame_are_counted_and_completed(tmp_path):
    frame = rows()
    counting = CountingOptions(categories=("a", "b", "n"), date_pattern="none")
    store = create_store("memory://tables-from-python", frame, counting=counting, pilot=FEW)
    store = store.update(frame, source="frame")
    assert store.snapshot.basis.table.sizes == (2, 2, 2)
    assert store.snapshot.vocabulary.terms[-2:] == ("n=0", "n=1")
    model = store.refit_as(LatentTree, n_topics=2, name="tree")
    assert model.documents == 400
    compared = store.select_as(LatentTree, [2, 3])
    assert [one.n_topics for one in compared.candidates if one.held_out is not None] == [2, 3]
    with pytest.raises(InvalidInput, match="blockmodel and bernoulli_mixture can; for topics"):
        store.select_as(PoissonMixture, [2, 3])
    written = store.transform(frame, str(tmp_path / "out"), source="frame")
    completed = pq.read_table(written.files[0])
    assert completed["b"].null_count == 0
    assert completed.num_rows == 400


def test_numbers_of_components_are_compared_and_found():
    rows = mixture_rows(600, 3, 2, separation=5.0, seed=1).rows.tolist()
    shape = KindOptions("vectors", "vector")
    alone = create_store("memory://rows-alone", rows, shape=shape, counting=ALONE)
    with pytest.raises(InvalidInput, match="has no halves of the records"):
        alone.select_as(GaussianMixture, [1, 2])
    store = create_store("memory://rows-from-python", rows, shape=shape)
    store = store.update(rows, source="rows")
    compared = store.select_as(GaussianMixture, [1, 2, 3])
    assert compared.separable.n_topics == 2
    assert store.refit_as(GaussianMixture, n_topics="auto").n_topics == 2
    best = store.refit_as(GaussianMixture, n_topics="predict").n_topics
    assert best == compared.likely[0].n_topics
    with pytest.raises(InvalidInput, match="model factors does not support"):
        store.refit_as(IndependentFactors, n_topics="predict")


def test_rows_of_numbers_need_no_name():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    named, plain = (
        create_store(url, rows.tolist(), shape=shape, counting=ALONE).update(given, source="rows")
        for url, shape, given in (
            ("memory://named-vectors", KindOptions("vectors", "vector"), rows.tolist()),
            ("memory://plain-vectors", KindOptions("vectors"), list(rows)),
        )
    )
    assert plain.snapshot.load() == named.snapshot.load()
    assert plain.documents == 60
    again = plain.update([{"vector": one} for one in rows], source="mappings")
    assert again.documents == 120
    with pytest.raises(ShardError, match="give a list"):
        plain.update(["law"], source="texts")


SETS = [
    [f"c{feature}" for feature in np.flatnonzero(row)]
    for row in feature_sets(600, 12, 2, mean=0.3, seed=1).batch.to_csr().toarray()
]


def test_sets_of_any_collection_are_counted_fitted_and_read(tmp_path):
    url, shape = "memory://sets-from-python", KindOptions("sets", "codes")
    counting = CountingOptions(date_pattern="none")
    store = create_store(url, SETS, shape=shape, counting=counting, pilot=FEW)
    pq.write_table(pa.table({"codes": SETS}), tmp_path / "codes.parquet")
    expected = store.update(str(tmp_path / "codes.parquet")).snapshot.load()
    store = store.forget(str(tmp_path / "codes.parquet"), allow_again=True)
    for given in (SETS, pd.Series(SETS), [{"codes": row} for row in SETS]):
        store = store.update(given, source="all")
        found = store.snapshot.load()
        assert np.array_equal(found.triple_sketch, expected.triple_sketch)
        assert store.documents == 600
        store = store.forget(given, source="all", allow_again=True)
    store = store.update(SETS, source="kept")
    model = store.refit_as(BernoulliMixture, n_topics=2, name="first")
    assert isinstance(open_store(store.url).model(), BernoulliMixture)
    assert "Chose 2 components: " in store.select_as(BernoulliMixture, [1, 2, 3]).why
    written = store.transform(SETS[:5], str(tmp_path / "out"), source="read")
    table = pq.read_table(written.files[0])
    assert table["length"].to_pylist() == [len(row) for row in SETS[:5]]
    assert written.log_likelihood == pytest.approx(np.mean(table["log_likelihood"]))
    assert model.n_features == 12

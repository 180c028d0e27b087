"""Numbers of states compared by what is held out, and states named, matched and compared."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_runs import run_command

from streaming_moments.errors import InvalidInput
from streaming_moments.models.chains import HiddenMarkovModel
from streaming_moments.models.rows import InMemory
from streaming_moments.models.three_view import MultiViewMixture
from streaming_moments.models.three_view.held_out import (
    dirichlet_triples,
    trial_of_halves,
    triple_chances,
)
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets

pytestmark = pytest.mark.usefixtures("few_blocks")
LETTERS = "abcdefghij"


def identity(n):
    words = Vocabulary(tuple(f"w{one}" for one in range(n)), core=n)
    return words, Basis(np.eye(n, dtype=np.int8), n, words.fingerprint)


def test_chances_of_triples_are_those_of_drawn_states():
    rng = np.random.default_rng(0)
    weights, alpha0 = np.array([0.5, 0.3, 0.2]), 0.7
    drawn = rng.dirichlet(alpha0 * weights, 200_000)
    third = np.einsum("da,db,dc->abc", drawn, drawn, drawn, optimize=True) / len(drawn)
    assert np.abs(dirichlet_triples(weights, alpha0) - third).max() < 5e-3
    views = [rng.dirichlet(np.ones(n), 3).T for n in (4, 5, 6)]
    for alpha in (0.0, alpha0):
        chances = triple_chances(views, weights, alpha)
        assert chances.shape == (4, 5, 6)
        assert chances.sum() == pytest.approx(1)
    spelled = sum(
        w * np.multiply.outer(np.multiply.outer(a, b), c)
        for w, a, b, c in zip(weights, *(view.T for view in views), strict=True)
    )
    assert np.allclose(triple_chances(views, weights), spelled)


def test_what_is_held_out_is_likeliest_by_as_many_states_as_there_are():
    words, sketch = identity(10)
    batch = markov_sequences(600, length=50, n_symbols=10, k=3, seed=4).batch
    foundation = SequencesFoundation(words, sketch)
    rows = InMemory((foundation.of_sequences(batch),))
    options = {k: HiddenMarkovModel.Options(topics=k) for k in (1, 2, 3)}
    scores = {
        k: trial_of_halves(rows, HiddenMarkovModel, options[k]).held_out.mean for k in options
    }
    assert scores[1] < scores[2] < scores[3] < 0
    # of the statistics of one half the model of the other has the same score
    assert trial_of_halves(rows, HiddenMarkovModel, options[2]).held_out.mean == scores[2]
    for apart in (
        SequencesFoundation(words, sketch, halves=False),
        SequencesFoundation(words, Basis(sketch.matrix[:, :6], 10, words.fingerprint)),
    ):
        held = InMemory((apart.of_sequences(batch),))
        with pytest.raises(InvalidInput, match="have no halves|only sketches"):
            trial_of_halves(held, HiddenMarkovModel, options[2])


def test_a_model_of_one_half_is_that_of_its_records_alone():
    drawn = view_records(2_000, sizes=(8, 7, 6), k=2, seed=3)
    words, sketches = zip(*map(identity, (8, 7, 6)), strict=True)
    odd = np.arange(2_000) % 2 == 1

    def counted(chosen, halves):
        views = (
            replace(CountBatch.from_csr(view.to_csr()[chosen], own.fingerprint), halves=odd[chosen])
            for view, own in zip(drawn.batch.views, words, strict=True)
        )
        foundation = ViewsFoundation(sketches, words, halves=halves)
        return InMemory((foundation.of([foundation.prepared(ViewBatch(*views))]),))

    options = MultiViewMixture.Options(topics=2)
    found = MultiViewMixture.fit_half(counted(odd | True, True), options, True)
    alone = MultiViewMixture.fit(counted(odd, False), options)
    assert np.array_equal(found.rows, alone.rows)
    assert np.array_equal(found.left, alone.left)
    assert (found.bars, found.documents) == (None, 1_000)
    renumbered = found.reordered(np.array([1, 0]))
    assert np.array_equal(renumbered.left, found.left[:, ::-1])
    assert np.array_equal(renumbered.weights, found.weights[::-1])


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two versions of a store of sequences and of one of views, each with a model."""

    folder = tmp_path_factory.mktemp("states")
    rng = np.random.default_rng(2)
    for number in range(2):
        drawn = markov_sequences(150, length=40, n_symbols=8, k=2, seed=2)
        symbols = rng.permutation(drawn.batch.symbols.reshape(150, 40))
        lines = ("".join(LETTERS[symbol] for symbol in row) for row in symbols)
        (folder / f"{number}.txt").write_text("\n".join(lines))
        states = rng.integers(0, 2, 600)
        rows = ["a,b,c"]
        for state in states:
            near = rng.random(3) < 0.8
            rows.append(",".join(f"v{state if own else 1 - state}" for own in near))
        (folder / f"{number}.csv").write_text("\n".join(rows))
    kinds = {
        "sequences": ("txt", ("--kind", "sequences"), ("--model", "hmm", "--refine", "5")),
        "views": ("csv", ("--kind", "views", "--columns", "a,b,c"), ("--model", "views")),
    }
    for kind, (suffix, options, model) in kinds.items():
        first = folder / f"0.{suffix}"
        for command in (
            ("create", folder / kind, first, *options, "--date-pattern", "none"),
            ("update", folder / kind, first),
            ("refit", folder / kind, *model, "--topics", "2", "--name", "first"),
            ("tag", folder / kind, "published", "first"),
            ("label", folder / kind, "0", "the larger"),
            ("update", folder / kind, folder / f"1.{suffix}"),
            ("refit", folder / kind, *model, "--topics", "2", "--name", "second"),
            ("tag", folder / kind, "published", "second"),
        ):
            run_command(*command)
    return folder


@pytest.mark.parametrize(
    ("kind", "model"), [("sequences", ("--model hmm", 200)), ("views", ("--model views", 50))]
)
def test_select_says_which_number_predicts(run, stores, tmp_path, kind, model):
    plot = tmp_path / "k.png"
    told = ("select", stores / kind, "--topics", "1-3", "--plot", plot)
    code, out, err = run(*told)
    assert code == 0, err
    assert "Chose 2 states: best held-out log-likelihood" in out.replace("\n", " ")
    assert out.count(f"--topics 2 {model[0]}") == out.count("hose ") == 1
    assert "2 states are separable: " in out.replace("\n", " ")
    assert plot.stat().st_size > 1000
    told = json.loads(run(*told[:-2], "--json")[1])
    assert [one["n_topics"] for one in told["candidates"]] == [1, 2, 3]
    assert told["taken"]["n_topics"] == 2
    assert told["taken"]["refined"] == model[1]
    assert told["separable"]["n_topics"] == 2
    model_options = model[0].split()
    code, _, err = run(
        "refit", stores / kind, *model_options, "--name", f"found-{kind}", "--topics", "auto"
    )
    assert code == 0, err
    assert ": the largest number found in both halves of the data" in err
    assert (told["best"], told["plot"]) == (None, None)


@pytest.mark.parametrize("kind", ["sequences", "views"])
def test_states_are_labelled_followed_and_compared(run, stores, tmp_path, kind):
    store = MomentStore.open(str(stores / kind))
    assert store.models["first"].labels == {0: "the larger"}
    [(state, text)] = store.models["second"].labels.items()
    assert text == "the larger"
    shown = json.loads(run("topics", stores / kind, "--json")[1])["states"]
    assert shown[state]["label"] == text
    assert text in run("topics", stores / kind)[1]
    assert run("page", stores / kind, "--output", tmp_path / "page.html")[0] == 0
    assert text in (tmp_path / "page.html").read_text()
    tagged = [one.version for one in store.log() if one.operation == "tag"]
    told = json.loads(run("diff", stores / kind, tagged[1], tagged[0], "--json")[1])
    pairs = told["moved"]["published"]["pairs"]
    assert len(pairs) == 2
    assert {0: state}[0] == next(after for before, after, _ in pairs if before == 0)
    assert all(0 < distance < 0.3 for *_, distance in pairs)
    code, _, err = run("label", stores / kind, "7", "none")
    assert (code, "topics 0 to 1, not 7" in err) == (2, True)


def drawn_rows(kind):
    """Lines of a file of a kind, of two or three planted states, and the options of its store."""
    if kind == "vectors":
        rows = mixture_rows(1500, 4, 3, separation=5.0, seed=1).rows.tolist()
        names = "w,x,y,z"
    elif kind == "edges":
        rows = community_graph(120, 2, 0.6, 0.05, 0.0, seed=0).edges.tolist()
        names = "source,target"
    else:
        rows = feature_sets(1500, 8, 2, mean=0.4, seed=1).batch.to_csr().toarray().tolist()
        names = "a,b,c,d,e,f,g,h"
    told = () if kind == "edges" else ("--columns", names)
    return [names, *(",".join(map(str, row)) for row in rows)], told


@pytest.mark.parametrize(
    ("kind", "model", "planted", "of"),
    [
        ("vectors", "gaussian_mixture", 3, "components"),
        ("sets", "bernoulli_mixture", 2, "components"),
        ("edges", "blockmodel", 2, "communities"),
    ],
)
def test_numbers_of_any_kind_are_found_and_compared(run, tmp_path, kind, model, planted, of):
    lines, told = drawn_rows(kind)
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    store = tmp_path / "store"
    assert run("create", store, tmp_path / "rows.csv", "--kind", kind, *told)[0] == 0
    assert run("update", store, tmp_path / "rows.csv")[0] == 0
    code, out, err = run("refit", store, "--model", model, "--topics", "auto", "--json", "-v")
    assert code == 0, err
    assert json.loads(out)["model"]
    assert f"Chose {planted} {of} (tried 1 to " in err
    assert f"gain in held-out log-likelihood of each of the {of} added: 2 " in err
    assert MomentStore.open(str(store)).load_any_model(json.loads(out)["model"]).n_topics == planted
    code, out, err = run("select", store, "--topics", "1-4", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["separable"]["n_topics"] == planted
    assert found["why_separable"].startswith(f"{planted} {of} are separable: ")
    assert (found["separable"]["apart"] is None) == (kind == "edges")
    code, out, err = run("refit", store, "--model", model, "--topics", "predict", "--name", "best")
    assert code == 0, err
    assert (
        MomentStore.open(str(store)).load_any_model("best").n_topics == found["taken"]["n_topics"]
    )


def test_a_store_without_halves_says_what_to_do_instead(run, tmp_path):
    lines, told = drawn_rows("vectors")
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    store = tmp_path / "store"
    options = ("--kind", "vectors", *told, "--no-halves")
    assert run("create", store, tmp_path / "rows.csv", *options)[0] == 0
    assert run("update", store, tmp_path / "rows.csv")[0] == 0
    code, _, err = run("select", store, "--topics", "1-4")
    assert (code, "has no halves of the records" in err) == (2, True)
    # the spectrum would take noise that is not normal for components
    code, _, err = run("refit", store, "--model", "gaussian_mixture", "--topics", "auto")
    assert code == 2
    assert "has no halves of the records, so `auto` cannot choose; give a number to --topics" in err
    assert "create the store without `create --no-halves`" in err

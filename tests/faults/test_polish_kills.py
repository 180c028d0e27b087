"""Passes over records whose workers or coordinators are killed: the same bits, in the end."""

import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from campaigns import Campaigns
from command_runs import run_command
from killable_cluster import PATIENCE, wait_for
from night_corpus import command

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees.shapes import AUTO, SHAPES
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.counting.sets import SetsForm
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.vectors import VectorsForm
from streaming_moments.storage.counting.views import ViewsForm
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

SHARDS, DOCUMENTS, PASSES = 24, 6, 2
COLUMNS = tuple("rstuvw")
GROUP = 2  # shards of one task, as these are all of nearly one size
POLICY = TokenPolicy()
VOCABULARY = Vocabulary(("law", "sea", "ship", "tax"), core=3, policy=POLICY.fingerprint)


def store_of_topics(place):
    """A store that has counted nothing, with topics to begin with."""
    basis = Basis(np.eye(3, 2, dtype=np.int8), len(VOCABULARY.terms), VOCABULARY.fingerprint)
    store = MomentStore.create(place, VOCABULARY, POLICY, basis, ShardFormat(), codocuments=False)
    drawn = np.random.default_rng(2).dirichlet(np.ones(4), 2).T
    model = TopicModel.from_topics(drawn, np.array([0.6, 0.4]), alpha0=0.5)
    parts, attributes = model.parts()
    named = TopicModel.from_parts(parts, {**attributes, "vocabulary": VOCABULARY.fingerprint})
    return store.save_model("given", named)


def store_of_vectors(place):
    grid = Grid(np.zeros(16), step=0.1, radius=60)
    foundation = VectorsFoundation(grid, np.eye(16, 5, dtype=np.int8), np.zeros(5, dtype=np.uint8))
    form = {**ShardFormat().to_json(), READING: VectorsForm().to_json()}
    return MomentStore.create_on(place, foundation, form)


def store_of_a_mixture(place):
    """One of vectors, likewise."""
    drawn = np.random.default_rng(2).normal(size=(2, 16))
    return store_of_vectors(place).save_model(
        "given", GaussianMixture(drawn, np.array([0.6, 0.4]), np.array([[1.0], [2.0]]))
    )


def store_of_factors(place):
    """Another of vectors."""
    mixing = np.random.default_rng(2).normal(size=(16, 3))
    unmixing = np.linalg.pinv(mixing).T
    given = IndependentFactors(mixing, unmixing, np.zeros(16), noise=np.full(16, 0.5))
    return store_of_vectors(place).save_model("given", given)


def store_of_a_chain(place):
    """One of sequences of letters, likewise."""
    letters = Vocabulary(tuple("abcd"), core=4)
    sketch = Basis(np.eye(4, dtype=np.int8), 4, letters.fingerprint)
    form = {**ShardFormat().to_json(), READING: SequencesForm().to_json()}
    store = MomentStore.create_on(place, SequencesFoundation(letters, sketch), form)
    emission, moves = np.random.default_rng(2).dirichlet(np.ones(4), 2).T, np.eye(2) / 2 + 0.25
    half = np.array([0.5, 0.5])
    return store.save_model("given", HiddenMarkovModel(emission, moves, half, half))


def store_of_views(place):
    """One of records of three columns, likewise."""
    words = [Vocabulary(tuple("abcd"), core=4) for _ in range(3)]
    bases = [Basis(np.eye(4, dtype=np.int8), 4, one.fingerprint) for one in words]
    form = {**ShardFormat().to_json(), READING: ViewsForm(("r", "s", "t"), (False,) * 3).to_json()}
    store = MomentStore.create_on(place, ViewsFoundation(tuple(bases), tuple(words)), form)
    tables = [np.random.default_rng(seed).dirichlet(np.ones(4), 2).T for seed in range(3)]
    return store.save_model("given", MultiViewMixture(*tables, np.array([0.6, 0.4])))


def store_of_sets(place):
    """One of columns of 0 and 1; two components are equal, so passes begin at a pilot of rows."""
    features = Vocabulary(COLUMNS, core=6)
    sketch = Basis(np.eye(6, dtype=np.int8), 6, features.fingerprint)
    form = {**ShardFormat().to_json(), READING: SetsForm(COLUMNS).to_json()}
    store = MomentStore.create_on(place, SetsFoundation(features, sketch), form)
    return store.save_model("given", BernoulliMixture(np.full((6, 2), 0.4), np.full(2, 0.5)))


def fitted_by(*create, model, refit=()):
    """Makes a store of the shards themselves, by commands, with a model of them to begin with."""

    def run(*told):
        run_command(*told, "--quiet")

    def made(place):
        shards = [str(path) for path in sorted(Path(place).parent.glob("shards/*.csv"))]
        run("create", place, *shards, *create)
        run("update", place, *shards)
        run("refit", place, "--model", model, "--topics", "2", "--name", "given", *refit)
        return MomentStore.open(place)

    return made


def categories(path, rng):
    """Six columns, three around each of two bits that often agree."""
    bits = rng.integers(0, 2, (DOCUMENTS, 1))
    bits = np.hstack([bits, np.where(rng.random((DOCUMENTS, 1)) < 0.8, bits, 1 - bits)])
    held = np.repeat(bits, 3, axis=1)
    rows = np.where(rng.random((DOCUMENTS, 6)) < 0.8, held, 1 - held)
    lines = [",".join(f"v{one}" for one in row) + "\n" for row in rows]
    path.write_text("".join([f"{','.join(COLUMNS)}\n", *lines]))


def features(path, rng):
    held = rng.random((DOCUMENTS, 6)) < np.where(rng.random((DOCUMENTS, 1)) < 0.5, 0.8, 0.2)
    lines = [",".join(map(str, row)) + "\n" for row in held.astype(int)]
    path.write_text("".join([f"{','.join(COLUMNS)}\n", *lines]))


def tree_of(shape):
    """A row of `MODELS`: tables, and the tree of one shape of them."""
    told = "--categories", ",".join(COLUMNS), "--min-documents", "1"
    return fitted_by(*told, model="latent_tree", refit=("--shape", shape)), categories, "csv", 1


def edges(path, rng):
    pairs = [(one, other) for one in range(12) for other in range(one)]
    near = np.array([3.0 if one % 2 == other % 2 else 1.0 for one, other in pairs])
    chosen = rng.choice(len(pairs), DOCUMENTS, replace=False, p=near / near.sum())
    lines = [f"n{pairs[at][0]},n{pairs[at][1]}\n" for at in chosen]
    path.write_text("".join(["r,s\n", *lines]))


def sequences(path, rng):
    path.write_text("".join("".join(rng.choice([*"abcd"], 200)) + "\n" for _ in range(DOCUMENTS)))


def records(path, rng):
    lines = [",".join(rng.choice([*"abcd"], 3)) + "\n" for _ in range(DOCUMENTS)]
    path.write_text("".join(["r,s,t\n", *lines]))


def texts(path, rng):
    lines = [" ".join(rng.choice(VOCABULARY.terms, 9)) for _ in range(DOCUMENTS)]
    path.write_text("\n".join(lines))


def rows(path, rng):
    np.save(path, rng.normal(size=(DOCUMENTS, 16)))


# Who makes a store with a model, who writes a shard, what it is called by, and the fewest kills.
MODELS = {
    "topics": (store_of_topics, texts, "txt", 2),
    "gaussian_mixture": (store_of_a_mixture, rows, "npy", 1),
    "factors": (store_of_factors, rows, "npy", 1),
    "hmm": (store_of_a_chain, sequences, "txt", 1),
    "views": (store_of_views, records, "csv", 1),
    "bernoulli_mixture": (store_of_sets, features, "csv", 1),
    **{shape: tree_of(shape) for shape in (*SHAPES, AUTO)},
    "blockmodel": (
        fitted_by("--kind", "edges", "--columns", "r,s", model="blockmodel"),
        edges,
        "csv",
        1,
    ),
}
# passes of the others differ from these in their sums alone
SHORT = ("topics", "gaussian_mixture", "hmm")
TRIED = MODELS if Campaigns.asked_for().long else SHORT


@dataclass(frozen=True)
class Corpus:
    """Shards, and what makes a store with a model that is polished by them."""

    model: str
    folder: Path

    @property
    def shards(self):
        return f"{self.folder}/shards/*.{MODELS[self.model][2]}"

    def new_store(self, place):
        first = self.folder / "store"
        if not first.exists():
            MODELS[self.model][0](str(first))
        return MomentStore.open(str(shutil.copytree(first, place)))


@pytest.fixture(scope="module", params=TRIED)
def corpus(request, tmp_path_factory):
    found = Corpus(request.param, tmp_path_factory.mktemp(request.param))
    rng, (_, write, ending, _) = np.random.default_rng(5), MODELS[found.model]
    (found.folder / "shards").mkdir()
    for number in range(SHARDS):
        write(found.folder / "shards" / f"{number:02}.{ending}", rng)
    return found


def begun(cluster, store, corpus):
    place = ("--scheduler", cluster.address, "--passes", PASSES)
    return command("polish", store.url, corpus.shards, *place)


def finish(process):
    process.join(PATIENCE)
    assert process.exitcode == 0


@pytest.fixture(scope="module")
def undisturbed(cluster, corpus, tmp_path_factory):
    """The model, and the seconds that it takes on a cluster that is warm."""
    for name in ("warm", "timed"):
        store = corpus.new_store(tmp_path_factory.mktemp(name) / "store")
        start = time.monotonic()
        finish(begun(cluster, store, corpus))
        seconds = time.monotonic() - start
    return store.latest().load_any_model(), seconds


@pytest.mark.long
@pytest.mark.parametrize("whom", ["worker", "coordinator"])
def test_passes_that_are_killed(campaigns, cluster, corpus, undisturbed, tmp_path, whom):
    rng = random.Random(campaigns.seed)
    wanted, seconds = undisturbed
    long = 25 if corpus.model in (*SHAPES, AUTO, "bernoulli_mixture") else 200
    most, kills, held, trials, repeated = campaigns.size(MODELS[corpus.model][3], long), 0, 0, 0, 0
    while kills < most:
        store, before, own = corpus.new_store(tmp_path / str(trials)), len(cluster.reads()), 0
        late = False
        process = begun(cluster, store, corpus)
        while True:
            process.join(rng.uniform(0, seconds) if kills + own < most else PATIENCE)
            if process.exitcode is None:
                assert kills + own < most, "the polish hangs"
                if whom == "worker":
                    own += 1
                    cluster.kill_worker(rng)
                    continue
                process.kill()
                process.join()
            if process.exitcode == 0:
                break  # maybe before the blow fell
            assert process.exitcode == -signal.SIGKILL
            own += 1
            if late := "given-polished2" in store.latest().models:
                break  # after its commit: what it had no time to delete is left to `gc`
            wait_for(cluster.workers)
            process = begun(cluster, store, corpus)
        done = store.latest()
        model, reads = done.load_any_model("given-polished2"), len(cluster.reads()) - before
        found, expected = model.parts()[0], wanted.parts()[0]
        same = all(np.array_equal(found[name], expected[name], equal_nan=True) for name in expected)
        same = same and model.polishing == wanted.polishing
        assert model.polishing.documents == SHARDS * DOCUMENTS
        assert late or done.folder.sizes("polishing") == {}
        assert done.verify() == []
        kills, trials, repeated = kills + own, trials + 1, repeated + reads - PASSES * SHARDS
        held += own * same
    # two workers, each with a group under way
    assert repeated <= 2 * GROUP * kills
    note = f"{trials} models, {repeated / kills:.1f} shards read again a kill"
    campaigns.record(f"polish of {corpus.model}: {whom} killed", kills, held, note)

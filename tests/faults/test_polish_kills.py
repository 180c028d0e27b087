"""Passes over records whose workers or coordinators are killed: the same bits, in the end."""

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from killable_cluster import PATIENCE, wait_for
from night_corpus import command

from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.vectors import VectorsForm
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

SHARDS, DOCUMENTS, PASSES = 24, 6, 2
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


def store_of_a_mixture(place):
    """One of vectors, likewise."""
    grid = Grid(np.zeros(16), step=0.1, radius=60)
    foundation = VectorsFoundation(grid, np.eye(16, 5, dtype=np.int8), np.zeros(5, dtype=np.uint8))
    form = {**ShardFormat().to_json(), READING: VectorsForm().to_json()}
    store = MomentStore.create_on(place, foundation, form)
    drawn = np.random.default_rng(2).normal(size=(2, 16))
    return store.save_model(
        "given", GaussianMixture(drawn, np.array([0.6, 0.4]), np.array([[1.0], [2.0]]))
    )


def texts(path, rng):
    lines = [" ".join(rng.choice(VOCABULARY.terms, 9)) for _ in range(DOCUMENTS)]
    path.write_text("\n".join(lines))


def rows(path, rng):
    np.save(path, rng.normal(size=(DOCUMENTS, 16)))


# Who makes a store with a model, who writes a shard, what it is called by, and the fewest kills.
MODELS = {
    "topics": (store_of_topics, texts, "txt", 2),
    "gaussian_mixture": (store_of_a_mixture, rows, "npy", 1),
}


@dataclass(frozen=True)
class Corpus:
    """Shards, and what makes a store with a model that is polished by them."""

    model: str
    folder: Path

    @property
    def shards(self):
        return f"{self.folder}/*.{MODELS[self.model][2]}"

    def new_store(self, place):
        return MODELS[self.model][0](str(place))


@pytest.fixture(scope="module", params=MODELS)
def corpus(request, tmp_path_factory):
    found = Corpus(request.param, tmp_path_factory.mktemp(request.param))
    rng, (_, write, ending, _) = np.random.default_rng(5), MODELS[found.model]
    for number in range(SHARDS):
        write(found.folder / f"{number:02}.{ending}", rng)
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
    most, kills, held, trials, repeated = campaigns.size(MODELS[corpus.model][3], 200), 0, 0, 0, 0
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

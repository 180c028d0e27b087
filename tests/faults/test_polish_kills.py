"""Passes over documents whose workers or coordinators are killed: the same bits, in the end."""

import random
import signal
import time

import numpy as np
import pytest
from killable_cluster import PATIENCE, killable_cluster, wait_for
from night_corpus import command

from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

SHARDS, DOCUMENTS, PASSES = 24, 6, 2
GROUP = 2  # shards of one task, as these are all of nearly one size
POLICY = TokenPolicy()
VOCABULARY = Vocabulary(("law", "sea", "ship", "tax"), core=3, policy=POLICY.fingerprint)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with killable_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("corpus"), np.random.default_rng(5)
    for number in range(SHARDS):
        lines = [" ".join(rng.choice(VOCABULARY.terms, 9)) for _ in range(DOCUMENTS)]
        (folder / f"{number:02}.txt").write_text("\n".join(lines))
    return folder / "*.txt"


def new_store(place):
    """A store that has counted nothing, with a model to begin with."""
    basis = Basis(np.eye(3, 2, dtype=np.int8), len(VOCABULARY.terms), VOCABULARY.fingerprint)
    store = MomentStore.create(
        str(place), VOCABULARY, POLICY, basis, ShardFormat(), codocuments=False
    )
    drawn = np.random.default_rng(2).dirichlet(np.ones(4), 2).T
    model = TopicModel.from_topics(drawn, np.array([0.6, 0.4]), alpha0=0.5)
    return store.save_model("given", replaced(model))


def replaced(model):
    parts, attributes = model.parts()
    return TopicModel.from_parts(parts, {**attributes, "vocabulary": VOCABULARY.fingerprint})


def begun(cluster, store, corpus):
    place = ("--scheduler", cluster.address, "--passes", PASSES)
    return command("polish", store.url, corpus, *place)


def finish(process):
    process.join(PATIENCE)
    assert process.exitcode == 0


@pytest.fixture(scope="module")
def undisturbed(cluster, corpus, tmp_path_factory):
    """The model, and the seconds that it takes on a cluster that is warm."""
    for name in ("warm", "timed"):
        store, start = new_store(tmp_path_factory.mktemp(name) / "store"), time.monotonic()
        finish(begun(cluster, store, corpus))
        seconds = time.monotonic() - start
    return store.latest().load_model(), seconds


@pytest.mark.parametrize("whom", ["worker", "coordinator"])
def test_passes_that_are_killed(campaigns, cluster, corpus, undisturbed, tmp_path, whom):
    rng = random.Random(campaigns.seed)
    wanted, seconds = undisturbed
    most, kills, held, trials, repeated = campaigns.size(2, 200), 0, 0, 0, 0
    while kills < most:
        store, before, own = new_store(tmp_path / str(trials)), len(cluster.reads()), 0
        late = False
        process = begun(cluster, store, corpus)
        while True:
            process.join(rng.uniform(0, seconds) if kills + own < most else PATIENCE)
            if process.exitcode == 0:
                break
            own += 1
            if whom == "worker":
                assert process.exitcode is None
                cluster.kill_worker(rng)
                continue
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            if late := "given-polished2" in store.latest().models:
                break  # after its commit: what it had no time to delete is left to `gc`
            wait_for(cluster.workers)
            process = begun(cluster, store, corpus)
        done = store.latest()
        model, reads = done.load_model("given-polished2"), len(cluster.reads()) - before
        same = (model.topics == wanted.topics).all() and model.polishing == wanted.polishing
        assert model.polishing.documents == SHARDS * DOCUMENTS
        assert late or done.folder.sizes("polishing") == {}
        assert done.verify() == []
        kills, trials, repeated = kills + own, trials + 1, repeated + reads - PASSES * SHARDS
        held += own * same
    # two workers, each with a group under way
    assert repeated <= 2 * GROUP * kills
    note = f"{trials} models, {repeated / kills:.1f} shards read again a kill"
    campaigns.record(f"polish: {whom} killed", kills, held, note)

"""Stores of other kinds and of tables, whose workers and commands are killed: bit for bit."""

import io
import random
import shutil
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaigns import Campaigns
from command_runs import run_command
from killable_cluster import PATIENCE, coordinator, wait_for
from night_corpus import command

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.memory import UpdatePlan
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.store.store import MomentStore

SHARDS, RECORDS = 6, 40
CHANGED = SHARDS - 1  # the shard that is forgotten, and replaced
PLAN = UpdatePlan(
    lump_bytes=4096, batch_bytes=4096, reads_in_flight=2, peak_bytes=0, group_shards=2
)
ALL_WORDS = ("--min-documents", "1")
KINDS = {
    "sequences": ("txt", ("--kind", "sequences", *ALL_WORDS)),
    "views": ("csv", ("--kind", "views", "--columns", "a,b,c", *ALL_WORDS)),
    "tables": ("csv", ("--categories", "a,b,c", *ALL_WORDS)),
    "edges": ("csv", ("--kind", "edges", "--columns", "a,b", "--sketch-columns", "3")),
    "vectors": ("csv", ("--kind", "vectors", "--columns", "a,b,c", "--squares", "--fourth")),
    "sets": ("csv", ("--kind", "sets", "--columns", "a,b,c")),
    "lists": ("parquet", ("--ids-column", "neighbours", "--max-topics", "2", *ALL_WORDS)),
}
NODES = 15
# lists are documents of token ids, of which other campaigns are
TRIED = [kind for kind in KINDS if kind != "lists" or Campaigns.asked_for().long]


def content(kind, number):
    rng = np.random.default_rng([3, number])
    if kind == "sequences":
        texts = ["".join(rng.choice(list("abcd"), 12)) + "\n" for _ in range(RECORDS)]
        return "".join(texts).encode()
    if kind == "lists":
        lists = [np.flatnonzero(rng.random(NODES) < 0.4) for _ in range(RECORDS)]
        pq.write_table(pa.table({"neighbours": lists}), file := io.BytesIO())
        return file.getvalue()
    names, values = ("a,b", NODES) if kind == "edges" else ("a,b,c", 3)
    if kind == "sets":
        rows = rng.integers(0, 2, (RECORDS, 3))
        return "".join(["a,b,c\n", *(",".join(map(str, row)) + "\n" for row in rows)]).encode()
    rows = rng.integers(0, values, (RECORDS, len(names.split(","))))
    if kind == "vectors":
        rows = rng.normal(size=rows.shape)
    before = "" if kind == "vectors" else "v"
    lines = [",".join(f"{before}{one}" for one in row) + "\n" for row in rows]
    return "".join([names + "\n", *lines]).encode()


@dataclass(frozen=True)
class Corpus:
    """Shards, a store that counts none of them, one that counts all, and a changed shard."""

    kind: str
    folder: Path

    @property
    def shards(self):
        return f"{self.folder}/shards/*.{KINDS[self.kind][0]}"

    def shard(self, number, of="shards"):
        return self.folder / of / f"{number}.{KINDS[self.kind][0]}"


@pytest.fixture(scope="module", params=TRIED)
def corpus(request, tmp_path_factory, few_blocks):
    found = Corpus(request.param, tmp_path_factory.mktemp(request.param))
    for folder in ("shards", "as it was", "changed"):
        (found.folder / folder).mkdir()
        for number in range(SHARDS):
            other = SHARDS * (folder == "changed" and number == CHANGED)
            found.shard(number, folder).write_bytes(content(found.kind, number + other))
    options = (*KINDS[found.kind][1], "--date-pattern", "none")
    run_command("create", f"{found.folder}/empty", found.shards, *options)
    shutil.copytree(found.folder / "empty", found.folder / "counted")
    with connect() as cluster:
        # a segment each, so that there is something to compact and to expire
        for number in range(SHARDS):
            store = MomentStore.open(f"{found.folder}/counted")
            update(store, list_shards([str(found.shard(number))]), Run(cluster))
    return found


def required(url):
    """The statistics of a store that is sound, and counts what its ledger says."""
    store = MomentStore.open(str(url))
    assert store.verify() == []
    records = list(store.ledger())
    assert len({record.url for record in records}) == len(records)
    assert sum(record.documents for record in records) == store.totals().n_documents
    assert store.totals().n_documents == RECORDS * len(records)
    return store.load()


def unlocked(store):
    """Let what was killed hold its lock no longer, as it would not after an hour."""
    numbers = [int(path.stem) for path in (Path(store) / "locks").glob("*.json")]
    if numbers:
        Lock(Folder.at(str(store)), max(numbers), "0" * 32, timedelta(hours=1)).release()


ACTIONS = {
    "update": lambda corpus, store: ("update", store, corpus.shards),
    "forget": lambda corpus, store: ("forget", store, corpus.shard(CHANGED)),
    "replace": lambda corpus, store: ("update", store, corpus.shard(CHANGED), "--replace"),
    "compact": lambda corpus, store: ("compact", store, "--by", "all"),
    "expire": lambda corpus, store: ("expire", store, "--keep", "1", "--older-than", "0s"),
}


def begun(action, corpus, store):
    """A copy of the store, and a shard as the action expects it."""
    which = "changed" if action == "replace" else "as it was"
    shutil.copyfile(corpus.shard(CHANGED, which), corpus.shard(CHANGED))
    shutil.copytree(corpus.folder / ("empty" if action == "update" else "counted"), store)
    return store


def ended(action, corpus, store):
    """Run an action to its end; gives seconds."""
    unlocked(store)
    start, process = time.monotonic(), command(*ACTIONS[action](corpus, store))
    process.join(PATIENCE)
    # what was forgotten before the kill is not counted any more
    assert process.exitcode in ((0, 2) if action == "forget" else (0,))
    return time.monotonic() - start


def test_commands_on_them_are_killed_and_run_again(campaigns, corpus, tmp_path):
    rng = random.Random(campaigns.seed)
    most = campaigns.size(1, 60)
    kills = trials = 0
    known = {}
    while kills < most:
        action = rng.choice(sorted(ACTIONS))
        if action not in known:
            store = begun(action, corpus, tmp_path / action)
            before = required(store)
            seconds = ended(action, corpus, store)
            known[action] = before, required(store), seconds
        before, after, seconds = known[action]
        store = begun(action, corpus, tmp_path / str(trials))
        process = command(*ACTIONS[action](corpus, store))
        process.join(rng.uniform(0, seconds))
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL  # it may have ended before
        assert required(store) in (before, after)
        ended(action, corpus, store)
        assert required(store) == after
        shutil.rmtree(store)
        trials += 1
    campaigns.record(f"commands on {corpus.kind} killed", kills, kills, f"{trials} stores")


def test_updates_of_them_whose_workers_and_coordinators_are_killed(
    campaigns, corpus, cluster, tmp_path
):
    shutil.copyfile(corpus.shard(CHANGED, "as it was"), corpus.shard(CHANGED))
    rng = random.Random(campaigns.seed)
    most = campaigns.size(1, 60)
    counted = required(corpus.folder / "counted")
    kills = updates = 0
    seconds = 0.5
    while kills < most:
        store = tmp_path / str(updates)
        shutil.copytree(corpus.folder / "empty", store)
        arguments = (cluster.address, str(store), corpus.shards, PLAN)
        begun, process = time.monotonic(), coordinator(*arguments)
        while True:
            process.join(rng.uniform(0, seconds) if kills < most else PATIENCE)
            if process.exitcode is None:
                assert kills < most, "the update hangs"
                if rng.random() < 0.5:
                    kills += 1
                    cluster.kill_worker(rng)
                    required(store)
                    continue
                process.kill()
                process.join()
            if process.exitcode == 0:
                break  # maybe before the blow fell
            assert process.exitcode == -signal.SIGKILL
            kills += 1
            required(store)
            wait_for(cluster.workers)
            process = coordinator(*arguments)
        seconds = max(seconds, (time.monotonic() - begun) / 2)
        assert required(store) == counted
        assert len(MomentStore.open(str(store)).ledger()) == SHARDS
        shutil.rmtree(store)
        updates += 1
    campaigns.record(f"updates of {corpus.kind} killed", kills, kills, f"{updates} updates")

"""What accumulates on a cluster: its workers come and go while it counts, and between turns."""

import json
import logging
import re
import shutil
import sys
import time
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import cloudpickle
import yaml
from distributed import LocalCluster, WorkerPlugin

from streaming_moments.pipelines.aggregation import group_runner
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.shared_options import Session, running
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.storage.counting import reading
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

PATIENCE = 120.0
TODAY = date(2026, 11, 23)


class Gate(WorkerPlugin):
    """Who reads leaves a line; the first of them waits in its second task until it leaves."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def setup(self, worker):
        read, folder, me = reading.read_indexed, self.folder, f"{worker.name}"

        def gated(shard, *arguments):
            with open(folder / "reads", "a") as log:
                log.write(f"{me} {shard.url}\n")
            deadline = time.monotonic() + PATIENCE
            # a task has three shards
            while reads(folder)[0][0] == me and len(reads(folder)) > 4:
                if (folder / "leaves").exists() or time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            return read(shard, *arguments)

        reading.read_indexed = gated


def reads(folder):
    log = folder / "reads"
    return [line.split(" ", 1) for line in log.read_text().splitlines()] if log.exists() else []


class Scaled:
    """Told of progress: as shards are counted a second worker joins, reads, and the first leaves.

    It leaves as `dask worker` does on SIGTERM: its nanny closes.
    """

    def __init__(self, local, folder):
        self.local, self.folder, self.joined, self.left = local, folder, False, False

    def advance(self, step, done, total):
        if step != "reading shards":
            return
        if not self.joined:
            self.joined = True
            self.local.scale(2)
            self.local.wait_for_workers(2, timeout=PATIENCE)
        elif not self.left and len({who for who, _ in reads(self.folder)}) == 2:
            self.left = True
            (self.folder / "leaves").touch()
            self.local.sync(self.local.workers[0].close)


def put(inbox, texts):
    """Documents that are acknowledged."""
    documents = [{"text": text} for text in texts]
    one, _ = RecordShape().submission(documents, new_receipt(0), False, TODAY)
    inbox.put([one])


def test_each_document_counts_once_while_workers_come_and_go(place, planted, embedded, monkeypatch):
    # shards of ten documents are soon counted
    monkeypatch.setattr(group_runner, "_LOOK", 0.0)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    shutil.copytree(place / "store", place / "twin")
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    ) as local:
        rules = {"seal_after": "10ms", "seal_documents": 10}
        cluster = {"scheduler": local.scheduler_address}
        content = {"store": str(place / "store"), "accumulate": rules, "cluster": cluster}
        config = service_of(content, "service.toml")
        with running(Session(**asdict(config.cluster))) as run:
            run.cluster.client.register_plugin(Gate(place))
            scaled = Scaled(local, place)
            ours = Accumulator.of(config, replace(run, progress=scaled), lambda line: None)
            for start in range(0, 120, 10):
                put(ours.seals.inbox, planted[start : start + 10])
            turn = ours.turn()
            assert (turn.sealed, turn.counted, scaled.left) == (120, 120, True)
            shards = [url for _, url in reads(place)]
            assert len(shards) > len(set(shards)) == 12, "what the first had counted went with it"
            # with one it began, and with one that stayed; the next turn plans with all
            local.scale(3)
            run.cluster.client.wait_for_workers(2, timeout=PATIENCE)
            put(ours.seals.inbox, planted[120:130])
            assert ours.turn().counted == 10
            assert (run.cluster.workers, ours.run.cluster.workers) == (1, 2)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in planted[:130])
    (place / "same.jsonl").write_text(lines)
    twin = MomentStore.open(str(place / "twin"))
    twin = update(twin, list_shards([f"{place}/same.jsonl"]), Run(embedded)).store.load()
    store = MomentStore.open(config.store)
    assert store.commit.documents == 900 + 130
    assert (store.load().pair_counts == twin.pair_counts).all()
    assert (store.load().triple_sketch == twin.triple_sketch).all()
    assert store.verify() == []


def test_the_age_that_workers_are_scaled_by_is_told_to_who_may_read(serve, place):
    deployed = Path(__file__).parents[3] / "deploy" / "kubernetes" / "service"
    *_, scaler = yaml.safe_load_all((deployed / "autoscaling.yaml").read_text())
    name = scaler["spec"]["metrics"][0]["external"]["metric"]["name"]
    tokens = place / "tokens.json"
    made = {role: add_token(tokens, role.name.lower(), role) for role in Role}

    def age(client):
        told = client("GET", "/metrics", headers={"Authorization": f"Bearer {made[Role.READER]}"})
        return float(re.search(rf"^{name} (\S+)$", told.text, re.MULTILINE)[1])

    with serve(tokens=str(tokens), refresh="50ms") as client:
        assert client("GET", "/metrics").status_code == 401
        assert age(client) == 0
        writer = {"Authorization": f"Bearer {made[Role.WRITER]}"}
        assert client.send([{"text": "a b c"}], headers=writer).status_code == 202
        deadline = time.monotonic() + PATIENCE
        while not age(client) > 0:
            assert time.monotonic() < deadline

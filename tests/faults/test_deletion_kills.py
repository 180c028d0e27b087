"""Deletions killed by SIGKILL at each operation of the storage: the next turn ends them."""

import json
import os
import random
import shutil
import signal
import time
from itertools import count
from pathlib import Path

import pytest
from forking import forking
from s3_server import s3_process, with_bucket
from sent_documents import SHAPE, TODAY, sealed_texts

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.ingest_worker.steps import read_steps
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log import layout
from streaming_moments.storage.log.locks import LockHeld
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORDS = ["law", "sea", "ship", "tax", "moon", "gold", "iron", "wood"]
PATIENCE = 600
SHARDS, DOCUMENTS = 6, 200


class Mortal:
    """Kills this process at one operation of the storage, before it or after it."""

    def __init__(self, at):
        self.at, self.seen = at, count()
        for name in ("create", "write", "delete"):
            setattr(Folder, name, self.around(getattr(Folder, name)))

    def around(self, operation):
        def mortal(folder, *arguments):
            place = next(self.seen)
            if place == self.at // 2 and self.at % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            found = operation(folder, *arguments)
            if place == self.at // 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return mortal


def turned(content, at, told):
    """A process of a turn, which may be killed; it says how many operations there were."""
    mortal = Mortal(at)
    with connect() as cluster:
        config = service_of(content, "service.toml")
        run = Run(cluster, storage_options=config.storage_options or None)
        accumulator = Accumulator.of(config, run, lambda line: None)
        failed = []
        while accumulator.deletions.waiting() or accumulator.lags:
            try:
                failed += accumulator.turn().failed
            except LockHeld:
                time.sleep(0.1)  # that of a process that was killed
    Path(told).write_text(json.dumps([next(mortal.seen), [str(error) for error in failed]]))


class Place:
    """Where a store and its inbox are, to be put back as they were."""

    def __init__(self, folder, url, options=None):
        self.folder, self.url, self.options, self.files = folder, url, options, {}
        self.content = {"store": f"{url}/store", "accumulate": {"lock_expiry": "1s"}}
        if options is not None:
            self.content["storage_options"] = options

    @property
    def top(self):
        return Folder.at(self.url, self.options)

    def run(self, cluster):
        return Run(cluster, storage_options=self.options)

    def keep(self):
        """Remember every file."""
        top = self.top
        self.files = {path: top.read(path) for path in top.sizes("")}

    def restore(self):
        """Put every file back, but the locks."""
        top = self.top
        top.delete([file.path for file in top.files("")])
        for path, content in self.files.items():
            top.write(path, content)

    def store(self):
        return MomentStore.open(f"{self.url}/store", storage_options=self.options)

    def inbox(self):
        return Inbox.open(f"{self.url}/store-inbox", self.options)


@pytest.fixture(scope="module")
def cluster():
    with connect() as found:
        yield found


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, str(tmp_path / "place"))


def made(place, cluster, documents, shards=SHARDS, **kept):
    """A store of some shards of documents, counted and in one segment, and its empty twin."""
    run = place.run(cluster)
    rng = random.Random(1)
    texts = [" ".join(rng.choices(WORDS, k=4)) for _ in range(200)]
    (place.folder / "pilot.txt").write_text("\n".join(texts))
    pilot = PilotOptions(vocabulary_size=8, core=8, max_topics=2, min_documents=2)
    listed = list_shards([str(place.folder / "pilot.txt")])
    create(f"{place.url}/store", listed, ShardFormat(), TokenPolicy(), pilot, run, **kept)
    top = Folder.at(f"{place.url}/store", place.options)
    twin = Folder.at(str(place.folder / "twin"))
    for path in top.sizes(""):
        twin.write(path, top.read(path))
    inbox = place.inbox()
    for shard in range(shards):
        records = [
            {"text": f"{' '.join(rng.choices(WORDS, k=4))} {shard} {one}", "id": f"{shard}-{one}"}
            for one in range(documents)
        ]
        inbox.put([SHAPE.submission(records, new_receipt(0), False, TODAY)[0]])
        SealLog(inbox).seal_next()
    accumulator = Accumulator.of(service_of(place.content, "service.toml"), run, lambda line: None)
    accumulator.turn()
    compact(place.store(), run)
    return accumulator


def of_many(place, cluster):
    """A deletion of 1,000 ids of all shards, one of which it empties."""
    made(place, cluster, DOCUMENTS)
    names = [f"{shard}-{one}" for shard in range(SHARDS) for one in range(DOCUMENTS)]
    names = [*names[:DOCUMENTS], *random.Random(2).sample(names[DOCUMENTS:], 1000 - DOCUMENTS)]
    Deletions(SealLog(place.inbox())).ask(Deletion("id", tuple(names)))
    return set(names)


def after_rollback(place, cluster):
    """Deletions of a shard and of a part of one that a rollback has undone, and a new one."""
    accumulator = made(place, cluster, 4)
    version = place.store().version
    first = ["0-1", *(f"1-{one}" for one in range(4))]
    accumulator.deletions.ask(Deletion("id", tuple(first)))
    accumulator.turn()
    rollback(place.store(), version)
    accumulator.deletions.ask(Deletion("id", ("0-2", "2-0")))
    return {*first, "0-2", "2-0"}


def of_few(place, cluster):
    """A deletion of a whole shard and of a part of another, in a store of few files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "FEWEST_BLOCKS", 1)
        made(place, cluster, 3, shards=3, codocuments=False, halves=False)
    names = ["0-1", *(f"1-{one}" for one in range(3))]
    Deletions(SealLog(place.inbox())).ask(Deletion("id", tuple(names)))
    return set(names)


SCENES = {"1,000 ids": of_many, "after a rollback": after_rollback}


def require_deleted(place, cluster, names, trial):
    """Fail unless the store counts what is left, as a recount does, and nothing else is there."""
    inbox, store = place.inbox(), place.store()
    content = b"".join(inbox.folder.read(f"sealed/{one}") for one in inbox.folder.sizes("sealed"))
    left = {json.loads(line)["id"] for line in content.splitlines()}
    assert not left & names
    assert len(sealed_texts(inbox)) == len(left)
    run = place.run(cluster)
    twin = place.folder / f"twin {trial}"
    shutil.copytree(place.folder / "twin", twin)
    listed = list_shards([f"{inbox.folder.url}/sealed/**/*.jsonl"], place.options)
    recounted = update(MomentStore.open(str(twin)), listed, run).store
    mine, other = store.load().arrays(), recounted.load().arrays()
    assert [name for name in other if not (mine[name] == other[name]).all()] == []
    assert set(store.ledger()) == set(recounted.ledger())
    assert store.verify() == []
    assert read_steps(inbox) == ()
    assert not inbox.folder.sizes("aside")
    assert Deletions(SealLog(inbox)).waiting() == {}
    shutil.rmtree(twin)


def run_turn(context, place, at, told):
    told.unlink(missing_ok=True)
    process = context.Process(target=turned, args=(place.content, at, str(told)))
    process.start()
    process.join(PATIENCE)
    assert not process.is_alive()
    return process.exitcode


def killed_anywhere(place, cluster, campaigns, names, most):
    """Kill so many turns at drawn operations, each from the same beginning; kills, operations."""
    context, told = forking(), place.folder / "told"
    place.keep()
    assert run_turn(context, place, -1, told) == 0
    operations, failed = json.loads(told.read_text())
    assert failed == []
    require_deleted(place, cluster, names, "undisturbed")
    places = list(range(2 * operations))
    random.Random(campaigns.seed).shuffle(places)
    kills = 0
    # Those near the end may not be met: the lock is renewed as often as time passes, so a turn has
    # more operations on a machine that was busy. Another place is drawn then.
    for at in places:
        if kills == most:
            break
        place.restore()
        killed = run_turn(context, place, at, told) == -signal.SIGKILL
        kills += killed
        if killed:
            assert run_turn(context, place, -1, told) == 0, at
        require_deleted(place, cluster, names, at)
    return kills, operations


@pytest.mark.long
@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("scene", SCENES)
def test_deletions_killed_at_any_operation(place, cluster, campaigns, scene):
    names = SCENES[scene](place, cluster)
    most = campaigns.size(2, None)
    kills, operations = killed_anywhere(place, cluster, campaigns, names, most)
    note = f"{operations} operations of the storage"
    campaigns.record(f"deletion, {scene}, killed", kills, kills, note)


@pytest.fixture(scope="module")
def s3():
    """Options of an S3 server in a process of its own, with a bucket `deletions`."""
    with s3_process() as (host, port):
        yield with_bucket(host, port, "deletions")


@pytest.mark.long
@pytest.mark.parametrize("scene", [of_few, after_rollback])
def test_deletions_killed_at_any_operation_on_s3(s3, tmp_path, cluster, campaigns, scene):
    if scene is after_rollback and not campaigns.long:
        pytest.skip("of the long form")
    place = Place(tmp_path, f"s3://deletions/{scene.__name__}", s3)
    names = scene(place, cluster)
    most = campaigns.size(1, 40)
    kills, operations = killed_anywhere(place, cluster, campaigns, names, most)
    note = f"{operations} operations of the storage"
    campaigns.record(f"deletion on S3, {scene.__name__}, killed", kills, kills, note)

"""Random schedules of writers, deletions, purges and rollbacks beside accumulators, bit for bit."""

import json
import random
import shutil
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from mortal_folder import Killed, mortal, sleeping
from sent_documents import SHAPE, TODAY, sealed_texts
from stepping_clocks import set_clock

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.purge import purge
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORDS = ["law", "sea", "ship", "tax", "moon", "gold", "iron", "wood"]
IDS = [str(number) for number in range(12)]
DAYS = ["2026-11-20", "2026-11-21"]
STEPS = 24
ACTIONS = {
    "write": 8,
    "delete": 3,
    "turn": 6,
    "turn that dies": 4,
    "purge": 1,
    "rollback": 1,
    "compact": 1,
    "expire": 1,
}
CLOCK_ACTIONS = {
    **ACTIONS,
    "clock set back": 4,
    "clock set forward": 2,
    "turn while the clock is set back": 4,
    "expire the inbox": 3,
}


@pytest.fixture(scope="module")
def embedded():
    with connect() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def empty(tmp_path_factory, embedded, few_blocks):
    """A store that was created, and no more."""
    place = tmp_path_factory.mktemp("schedules")
    rng = random.Random(1)
    (place / "pilot.txt").write_text(
        "\n".join(" ".join(rng.choices(WORDS, k=4)) for _ in range(200))
    )
    pilot = PilotOptions(vocabulary_size=8, core=8, max_topics=2, min_documents=2)
    listed = list_shards([str(place / "pilot.txt")])
    create(str(place / "store"), listed, ShardFormat(), TokenPolicy(), pilot, Run(embedded))
    return place / "store"


class Schedule:
    """A store and an inbox, what was done to them, and the documents that are to be there."""

    actions = ACTIONS

    def __init__(self, place, empty, run, rng):
        shutil.copytree(empty, place / "store")
        self.place, self.empty, self.run, self.rng = place, empty, run, rng
        content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
        self.config = service_of(content, "service.toml")
        self.lines, self.done, self.documents, self.written = [], [], {}, 0
        several = (Accumulator.of(self.config, run, self.lines.append) for _ in range(2))
        self.accumulators = list(several)
        self.inbox = Inbox.open(self.config.inbox_url)

    @property
    def store(self):
        return MomentStore.open(self.config.store)

    def act(self):
        action = self.rng.choices(list(self.actions), list(self.actions.values()))[0]
        self.done.append(action)
        getattr(self, action.replace(" ", "_"))()

    def write(self):
        """One of several writers sends a few documents, some under a key that came before."""
        receipt, records = new_receipt(0), []
        for _ in range(self.rng.randint(1, 4)):
            self.written += 1
            text = f"{' '.join(self.rng.choices(WORDS, k=4))} {self.written}"
            name = self.rng.choice(IDS)
            day = {"date": self.rng.choice(DAYS)} if self.rng.random() < 0.5 else {}
            records.append({"text": text, "id": name} | day)
            self.documents[text] = (name, receipt)
        writer = Inbox.open(self.config.inbox_url)
        one = SHAPE.submission(records, receipt, False, TODAY)[0]
        # sent again after a lost reply, maybe in another batch
        for _ in range(self.rng.choice([1, 1, 2])):
            writer.put([one])

    def delete(self):
        place = self.rng.randrange(2)
        # in the order they came in, as receipts are random
        several = list(dict.fromkeys(known[place] for known in self.documents.values()))
        if not several:
            return
        names = self.rng.sample(several, min(len(several), self.rng.randint(1, 3)))
        deletions = Deletions(SealLog(Inbox.open(self.config.inbox_url)))
        deletions.ask(Deletion(("id", "receipt")[place], tuple(names)))
        self.documents = {
            text: known for text, known in self.documents.items() if known[place] not in names
        }

    def turn(self):
        turn = self.rng.choice(self.accumulators).turn()
        for _, error in turn.failed:
            raise error

    def turn_that_dies(self):
        folder = self.inbox.folder
        dying = SealLog(mortal(folder, self.rng.randrange(60), self.rng.random() < 0.5))
        try:
            turn = replace(self.accumulators[0], seals=dying).turn()
        except Killed:
            return
        for _, error in turn.failed:
            raise error

    def purge(self):
        sealed = {self.inbox.folder.shard(f"sealed/{path}"): path for path in self.sealed()}
        counted = [name for name in sealed if self.store.ledger().find(name) is not None]
        if not counted:
            return
        name = self.rng.choice(counted)
        content = self.inbox.folder.read(f"sealed/{sealed[name]}")
        try:
            purge(self.store, [name], self.run)
        except InvalidInput as refused:
            if "are being deleted" not in str(refused):
                raise
            return
        for line in content.splitlines():
            self.documents.pop(json.loads(line)["text"], None)

    def rollback(self):
        store = self.store
        kept = [one.version for one in store.log()]
        rollback(store, self.rng.choice(kept))

    def compact(self):
        compact(self.store, self.run)

    def expire(self):
        expire(self.store, self.rng.randint(1, 5), timedelta(0))

    def sealed(self):
        return list(self.inbox.folder.sizes("sealed"))

    def settle(self):
        """Let what waits be counted and deleted, and count what a rollback counts no more."""
        deadline = time.monotonic() + 300
        accumulator = Accumulator.of(self.config, self.run, self.lines.append)
        while True:
            turn = accumulator.turn()
            for _, error in turn.failed:
                raise error
            if not accumulator.lags and not accumulator.deletions.waiting():
                break
            assert time.monotonic() < deadline
        update(self.store, self.listed(), self.run)

    def listed(self):
        return list_shards([f"{self.inbox.folder.url}/sealed/**/*.jsonl"]) if self.sealed() else []

    def problems(self):
        """What is else than an update of what is to be there counts."""
        found, wanted = Counter(sealed_texts(self.inbox)), Counter(self.documents)
        problems = (
            []
            if found == Counter(dict.fromkeys(wanted, 1))
            else [
                f"{found - Counter(dict.fromkeys(wanted, 1))} too many, "
                f"{Counter(dict.fromkeys(wanted, 1)) - found} lost"
            ]
        )
        shutil.copytree(self.empty, self.place / "anew")
        anew = update(MomentStore.open(str(self.place / "anew")), self.listed(), self.run).store
        mine, other = self.store.load().arrays(), anew.load().arrays()
        problems += [f"other {name}" for name in other if not (mine[name] == other[name]).all()]
        if set(self.store.ledger()) != set(anew.ledger()):
            problems.append("another ledger")
        if self.inbox.folder.sizes("aside"):
            problems.append("old content lies aside")
        return problems + self.store.verify()


class UnderASetClock(Schedule):
    """As a schedule; the clock of the storage is set by hours, between turns and within them."""

    actions = CLOCK_ACTIONS

    def set_clock(self, hours):
        set_clock(timedelta(hours=hours), self.config.store, self.config.inbox_url)

    def clock_set_back(self):
        self.set_clock(-self.rng.uniform(1, 12))

    def clock_set_forward(self):
        self.set_clock(self.rng.uniform(1, 30))

    def turn_while_the_clock_is_set_back(self):
        at = self.rng.randrange(60)
        seals = SealLog(sleeping(self.inbox.folder, at, self.clock_set_back))
        for _, error in replace(self.rng.choice(self.accumulators), seals=seals).turn().failed:
            raise error

    def expire_the_inbox(self):
        keep = replace(self.config.keep, keys=timedelta(days=1))
        Accumulator.of(replace(self.config, keep=keep), self.run, self.lines.append).expire_if_due()


def test_random_schedules_leave_what_a_recount_counts(tmp_path, empty, embedded, campaigns):
    trials = campaigns.size(2, 150)
    scheduled(Schedule, "inbox: random schedules", trials, tmp_path, empty, embedded, campaigns)


def test_a_clock_that_is_set_by_hours_loses_nothing_and_doubles_nothing(
    tmp_path, empty, embedded, campaigns
):
    name = "inbox: random schedules under a clock that is set by hours"
    trials = campaigns.size(1, 150)
    scheduled(UnderASetClock, name, trials, tmp_path, empty, embedded, campaigns)


def scheduled(kind, name, trials, tmp_path, empty, embedded, campaigns):
    held, told, done = 0, [], Counter()
    for trial in range(trials):
        seed = f"{campaigns.seed} {trial}"
        place = tmp_path / str(trial)
        place.mkdir()
        schedule = kind(place, empty, Run(embedded), random.Random(seed))
        try:
            for _ in range(STEPS):
                schedule.act()
            schedule.settle()
            problems = schedule.problems()
        except Exception as error:
            problems = [repr(error)]
        if problems:
            told.append(f"{seed}: {schedule.done}: {problems}; {schedule.lines[-5:]}")
        held += not problems
        done.update(schedule.done)
        shutil.rmtree(place)
    print("\n".join(told))
    note = ", ".join(f"{number} x {action}" for action, number in sorted(done.items()))
    campaigns.record(name, trials, held, note)

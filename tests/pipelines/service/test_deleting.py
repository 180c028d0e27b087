"""Deletions are carried out whatever was rolled back, expired or cannot be counted."""

import os
import shutil
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sent_documents import SHAPE, TODAY, sealed_texts

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service import config as config_module
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker import sealed_shards
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator, accumulate
from streaming_moments.pipelines.service.ingest_worker.steps import read_steps
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore


class Place:
    """A store, its inbox, what accumulates, and the documents that are to be counted."""

    def __init__(self, folder, run):
        self.folder, self.lines, self.counted = folder, [], {}
        content = {"store": str(folder / "store"), "accumulate": {"seal_after": "10ms"}}
        config = service_of(content, "service.toml")
        self.accumulator = Accumulator.of(config, run, self.lines.append)
        shutil.copytree(folder / "store", folder / "twin")

    @property
    def store(self):
        return MomentStore.open(str(self.folder / "store"))

    @property
    def inbox(self):
        return self.accumulator.seals.inbox

    def put(self, texts):
        """Put documents in the inbox, by id."""
        records = [{"text": text, "id": name} for name, text in texts.items()]
        self.inbox.put([SHAPE.submission(records, new_receipt(0), False, TODAY)[0]])
        self.counted |= texts

    def ask(self, *ids):
        """Ask for a deletion by id."""
        for name in ids:
            self.counted.pop(name, None)
        return self.accumulator.deletions.ask(Deletion("id", ids))

    def turn(self):
        """The next turn that is due."""
        deadline = time.monotonic() + 60
        while (turn := self.accumulator.look()) is None:
            assert time.monotonic() < deadline
        return turn

    def require_as_counted_anew(self):
        """Fail unless the statistics are bit for bit those of the documents that are left."""
        assert sealed_texts(self.inbox) == sorted(self.counted.values())
        place = self.folder / "anew"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.folder / "twin", place)
        listed = list_shards([f"{self.inbox.folder.url}/sealed/**/*.jsonl"]) if self.counted else []
        twin = update(MomentStore.open(str(place)), listed, self.accumulator.run).store
        mine, other = self.store.load().arrays(), twin.load().arrays()
        assert [name for name in other if not (mine[name] == other[name]).all()] == []
        assert self.store.length_histogram() == twin.length_histogram()
        assert set(self.store.ledger()) == set(twin.ledger())
        assert self.store.verify() == []

    def require_no_text(self, text):
        """Fail if a file of the inbox holds a text."""
        files = [one for one in Path(self.inbox.folder.url).rglob("*") if one.is_file()]
        assert not any(text.encode() in one.read_bytes() for one in files)


@pytest.fixture
def service(place, embedded):
    return Place(place, Run(embedded))


@pytest.fixture
def compacted(service, planted):
    """A service that has counted two shards in one segment; gives it and the version."""
    service.put({"a": planted[0], "b": planted[1], "c": planted[2]})
    service.turn()
    service.put({"d": planted[3]})
    service.turn()
    compact(service.store, service.accumulator.run)
    return service, service.store.version


def test_a_deletion_at_the_service_of_a_site_reaches_the_hub(compacted, planted, tmp_path):
    service, _ = compacted
    hub = create_like(str(tmp_path / "hub"), SharedFoundation.of(service.store))
    hub = pull(hub, service.store).store
    service.ask("a", "d")
    assert service.turn().forgotten == 2
    found = pull(hub, service.store)
    assert found.change == -2
    assert found.store.load() == service.store.load()
    # the service deletes, and does not purge; an expiry drops the earlier versions of both
    hub, _ = expire(found.store, 1, timedelta(0))
    assert hub.verify() == []
    assert hub.load() == service.store.load()


def test_a_hub_with_a_service_of_its_own_deletes_its_own_documents(service, planted, tmp_path):
    site = create_like(str(tmp_path / "site"), SharedFoundation.of(service.store))
    site = update(site, list_shards([_written(tmp_path, planted[5:9])]), service.accumulator.run)
    before = pull(service.store, site.store, "rome").store.commit.documents
    service.put({"a": planted[0], "b": planted[1]})
    service.turn()
    assert service.store.commit.documents == before + 2
    service.ask("a")
    assert service.turn().forgotten == 1
    store = service.store
    assert store.commit.documents == before + 1
    assert list(store.commit.origins) == ["rome"]
    assert store.verify() == []
    assert pull(store, site.store).change == 0


def _written(folder, texts):
    path = folder / "texts.txt"
    path.write_text("\n".join(texts))
    return str(path)


@pytest.mark.parametrize("name", ["a", "d"])
def test_what_a_rollback_brings_back_is_deleted_again(compacted, planted, name):
    service, version = compacted
    service.ask(name)
    assert service.turn().forgotten == 1
    service.require_as_counted_anew()
    rollback(service.store, version)
    assert service.accumulator.look() is not None
    service.require_as_counted_anew()
    service.require_no_text(planted[0 if name == "a" else 3])
    assert any("subtracted them again" in line for line in service.lines)
    assert service.accumulator.look() is None, "once is enough"


def test_a_deletion_goes_on_after_a_rollback_past_another(compacted, planted):
    service, version = compacted
    service.ask("a")
    service.turn()
    rollback(service.store, version)
    asked = [service.ask("b"), service.ask("d")]
    turn = service.turn()
    assert (turn.forgotten, turn.failed) == (2, ())
    assert [service.accumulator.deletions.done(one).documents for one in asked] == [1, 1]
    service.require_as_counted_anew()
    # and once more, to the version at which the first was done
    rollback(service.store, version + 1)
    service.put({"e": planted[4]})
    service.turn()
    service.require_as_counted_anew()
    service.ask("c")
    service.turn()
    service.require_as_counted_anew()


def test_a_rollback_between_the_file_and_the_store_of_a_deletion(compacted):
    """The deletion is planned and its file cut; then it dies, and the store goes back."""
    service, version = compacted
    service.ask("a")
    service.turn()
    identity = service.ask("b")
    deletions = service.accumulator.deletions
    plan = deletions.plan(identity, deletions.waiting()[identity])
    deletions.set_aside(*plan.shards)
    rollback(service.store, version)
    turn = service.turn()
    assert (turn.forgotten, turn.failed) == (1, ())
    service.require_as_counted_anew()


def test_where_no_other_version_is_kept_all_others_of_the_segment_are_counted_again(compacted):
    service, version = compacted
    service.ask("a")
    service.turn()
    store = rollback(service.store, version)
    expire(store, keep=1, older_than=timedelta(0))
    assert service.turn().failed == ()
    service.require_as_counted_anew()


def test_a_deletion_that_cannot_be_carried_out_stops_no_other(compacted, planted):
    service, version = compacted
    service.ask("a")
    service.turn()
    store = rollback(service.store, version)
    expire(store, keep=1, older_than=timedelta(0))
    inbox = Path(service.inbox.folder.url)
    other = max((inbox / "sealed").rglob("*.jsonl"))
    shutil.move(other, service.folder / "other")
    service.put({"e": planted[4], "f": planted[5]})
    turn = service.turn()
    assert turn.counted == 2
    assert [step for step, _ in turn.failed] == ["delete again"]
    assert "nor do other shards of its segment" in str(turn.failed[0][1])
    blocked, free = service.ask("b"), service.ask("e")
    turn = service.turn()
    assert turn.forgotten == 1
    assert [step for step, _ in turn.failed][-1] == f"delete {blocked}"
    assert service.accumulator.deletions.done(free).documents == 1
    failing = {one.name: one for one in read_steps(service.inbox)}
    assert set(failing) == {"delete again", "delete"}
    # a third of the same shard waits until the one that has begun is done
    third = service.ask("c")
    turn = service.turn()
    told = dict(turn.failed)[f"delete {third}"]
    assert f"deletion {blocked} is changing" in str(told)
    # what is old goes all the same, but what is being deleted from
    for path in (inbox / "sealed").rglob("*.jsonl"):
        then = path.stat().st_mtime - 31 * 86_400
        os.utime(path, (then, then))
    keep = config_module.KeepSection(None, timedelta(days=30))
    config = replace(service.accumulator.config, keep=keep)
    assert replace(service.accumulator, config=config).expire_if_due().shards == 1
    assert len(list((inbox / "sealed").rglob("*.jsonl"))) == 1
    shutil.move(service.folder / "other", other)
    deadline = time.monotonic() + 60
    while service.accumulator.deletions.waiting():
        assert time.monotonic() < deadline
        service.accumulator.look()
    assert (sealed_texts(service.inbox), list(service.counted)) == ([planted[3]], ["d", "f"])
    assert service.store.commit.documents == 900 + 2
    assert service.store.verify() == []
    assert read_steps(service.inbox) == ()


def test_deletions_do_not_wait_for_counting(service, planted, monkeypatch):
    service.put({"a": planted[0], "b": planted[1]})
    service.turn()
    with monkeypatch.context() as patch:

        def failing(*told, **how):
            raise StoreError("the storage is away")

        patch.setattr(sealed_shards, "update", failing)
        service.put({"c": planted[2], "d": planted[3]})
        asked = [service.ask("a"), service.ask("c")]
        turn = service.turn()
        assert turn.forgotten == 2
        assert [step for step, _ in turn.failed] == ["count"]
        # sealed alone, and gone before it is counted
        service.put({"e": planted[4]})
        asked.append(service.ask("e"))
        assert service.turn().forgotten == 1
        assert [service.accumulator.deletions.done(one).documents for one in asked] == [1, 1, 1]
        (step,) = read_steps(service.inbox)
        assert (step.step, step.error) == ("count", "the storage is away")
    deadline = time.monotonic() + 60
    while service.accumulator.lags:
        assert time.monotonic() < deadline
        service.accumulator.look()
    service.require_as_counted_anew()
    assert read_steps(service.inbox) == ()


def test_each_step_fails_alone_and_is_shown(service, serve, planted, monkeypatch):
    def failing(*told, **how):
        raise KeyError("a fault of ours")

    now = [0.0]
    ours = replace(service.accumulator, clock=lambda: now[0])
    for name in ("_counted", "expire_if_due", "refit_if_due"):
        monkeypatch.setattr(Accumulator, name, failing)
    service.put({"a": planted[0]})
    asked = service.ask("a")

    def over(seconds):
        now[0] += seconds
        return ours.deletions.done(asked) is not None and len(service.lines) > 8

    accumulate(ours, over)
    assert ours.deletions.done(asked).documents == 1
    failing = {one.step: one for one in read_steps(service.inbox)}
    assert set(failing) == {"count", "expire", "night"}
    assert failing["count"].failures > 1
    assert failing["count"].error.startswith("KeyError: 'a fault of ours' (")
    with serve() as client:
        text = client("GET", "/metrics").text
        told = dict(line.rsplit(" ", 1) for line in text.splitlines() if "step_failures{" in line)
        found = {name.split('"')[1]: float(value) for name, value in told.items()}
        assert found["count"] == failing["count"].failures
        assert (found["delete"], found["compare"]) == (0, 0)
        page = client("GET", "/health").text
        assert "KeyError: &#39;a fault of ours&#39;" in page
    monkeypatch.undo()
    now[0] += 3600
    ours.turn()
    assert {one.step for one in read_steps(service.inbox)} == {"expire", "night"}
    # a night that is not due is none that went well
    nothing = {"act": lambda: None}
    assert ours.steps.attempt("night", **nothing, idle_is_fine=False) is None
    assert {one.step for one in read_steps(service.inbox)} == {"expire", "night"}
    ends = iter([False, True])
    accumulate(ours, lambda seconds: next(ends))
    assert read_steps(service.inbox) == ()

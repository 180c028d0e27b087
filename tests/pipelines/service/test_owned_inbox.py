"""Two services of two stores by mistake on one inbox: the second is refused, and counts nothing."""

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from service_answers import due

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.owners import InboxOfAnother, Owner, assign
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

SOON = {"seal_after": "10ms"}


@pytest.fixture
def two(fitted, tmp_path):
    """Two copies of a store, and the inbox that both are told."""
    for name in ("one", "other"):
        shutil.copytree(fitted, tmp_path / name)
    return tmp_path / "one", tmp_path / "other", tmp_path / "inbox"


def accumulator_of(store, inbox, embedded):
    content = {"store": str(store), "inbox": str(inbox), "accumulate": SOON}
    return Accumulator.of(service_of(content, "service.toml"), Run(embedded), lambda line: None)


def test_a_second_service_does_not_begin(serve_at, two, embedded):
    one, other, inbox = two
    with (
        serve_at(one, inbox=str(inbox)),
        serve_at(one, inbox=str(inbox)),
        pytest.raises(InboxOfAnother, match=f"{one}, not to {other}"),
        serve_at(other, inbox=str(inbox)),
    ):
        pass
    accumulator_of(one, inbox, embedded)
    with pytest.raises(InboxOfAnother, match=f"{one}, not to {other}"):
        accumulator_of(other, inbox, embedded)


def test_an_inbox_that_is_assigned_elsewhere_is_not_touched_by_those_who_run(
    serve_at, two, embedded, planted
):
    one, other, inbox = two
    earlier = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        assert client.send([{"text": planted[0], "id": 1}]).status_code == 202
        folder = client.service.current.inbox.folder
        assert assign(folder, Owner.at(str(other))) == Owner.at(str(one))
        client.service.current.look()
        refused = client.send([{"text": planted[1]}])
        assert (refused.status_code, "another store" in refused.json()["detail"]) == (503, True)
        assert client("DELETE", "/v1/documents", params={"id": "1"}).status_code == 503
        ready = client("GET", "/readyz")
        assert (ready.status_code, ready.json()["problems"]) == (503, ["counting", "owner"])
        assert client("GET", "/v1/topics").status_code == 200
        deadline = time.monotonic() + 60
        while earlier.seals.inbox.backlog().age.total_seconds() < 0.02:
            assert time.monotonic() < deadline
        with pytest.raises(InboxOfAnother):
            earlier.look()
        with pytest.raises(InboxOfAnother):
            earlier.expire_if_due()
        assert MomentStore.open(str(one)).commit.documents == 900
        assert accumulator_of(other, inbox, embedded).look().counted == 1
        assert MomentStore.open(str(other)).commit.documents == 901


def test_a_store_that_has_moved_takes_its_inbox_by_a_command(serve_at, two, tmp_path):
    one, _, inbox = two
    with serve_at(one, inbox=str(inbox)) as client:
        receipt = client.send([{"text": "the sea"}]).json()["receipt"]
    one.rename(tmp_path / "moved")
    with (
        pytest.raises(InboxOfAnother, match="inbox assign"),
        serve_at(tmp_path / "moved", inbox=str(inbox)),
    ):
        pass
    config = tmp_path / "service.toml"
    config.write_text(f'store = "{tmp_path}/moved"\ninbox = "{inbox}"\n')
    runner = CliRunner()
    assert runner.invoke(cli, ["inbox", "show", str(config)]).output == f"{one}\n"
    shown = json.loads(runner.invoke(cli, ["inbox", "show", str(config), "--json"]).output)
    assert shown["store"] == str(one)
    told = runner.invoke(cli, ["inbox", "assign", str(config)], catch_exceptions=False).output
    assert told == f"{inbox} belongs to {tmp_path}/moved now (before: {one})\n"
    with serve_at(tmp_path / "moved", inbox=str(inbox)) as client:
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "accepted"


def test_a_service_that_has_moved_whole_counts_nothing_twice(
    serve_at, two, embedded, planted, tmp_path
):
    one, _, inbox = two
    accumulator = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        receipt = client.send([{"text": planted[0], "id": 1}]).json()["receipt"]
        assert due(accumulator).counted == 1
    place = tmp_path / "there"
    place.mkdir()
    one, inbox = (path.rename(place / path.name) for path in (one, inbox))
    store, run = MomentStore.open(str(one)), Run(embedded)
    # a night or an update of the sealed shards, before anyone assigns the inbox
    shards = list_shards([f"{inbox}/sealed/**/*.jsonl"])
    with pytest.raises(
        InvalidInput, match="the inbox with 1 sealed shard has moved: run `streaming"
    ):
        update(store, shards, run)
    config = tmp_path / "service.toml"
    config.write_text(f'store = "{one}"\ninbox = "{inbox}"\n')
    told = CliRunner().invoke(cli, ["inbox", "assign", str(config)], catch_exceptions=False).output
    assert told.splitlines()[1:] == [f"what the store counted at {two[2]} keeps its counts"]
    renamed = store.latest()
    assert [shard.url for shard in shards] == [
        record.url for record in renamed.ledger() if record.url.endswith(".sealed.jsonl")
    ]
    assert (renamed.load(), update(renamed, shards, run).counted) == (store.load(), 0)
    accumulator = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"
        assert client("DELETE", "/v1/documents", params={"id": "1"}).status_code == 202
        due(accumulator)
    assert MomentStore.open(str(one)).commit.documents == store.commit.documents - 1


def test_a_copy_of_a_service_takes_its_counts_along(two, embedded, planted, serve_at, tmp_path):
    one, _, inbox = two
    accumulator = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        client.send([{"text": planted[0]}])
        assert due(accumulator).counted == 1
    copies = [shutil.copytree(path, tmp_path / "copy" / path.name) for path in (one, inbox)]
    config = tmp_path / "service.toml"
    config.write_text('store = "{}"\ninbox = "{}"\n'.format(*copies))
    assert CliRunner().invoke(cli, ["inbox", "assign", str(config)]).exit_code == 0
    store = MomentStore.open(str(copies[0]))
    listed = list_shards([f"{copies[1]}/sealed/**/*.jsonl"])
    assert update(store, listed, Run(embedded)).counted == 0


@pytest.mark.parametrize("key", [None, "1"])
def test_two_inboxes_of_a_store_count_equal_documents_each(
    key, two, embedded, planted, serve_at, tmp_path
):
    one, _, inbox = two
    inboxes = inbox, tmp_path / "second"
    for place in inboxes:
        accumulator = accumulator_of(one, place, embedded)
        with serve_at(one, inbox=str(place)) as client:
            receipt = client.send([{"text": planted[0]}], key).json()["receipt"]
            assert due(accumulator).counted == 1
            assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"
    store = MomentStore.open(str(one))
    shards = list_shards([f"{place}/sealed/**/*.jsonl" for place in inboxes])
    first, second = (Path(shard.url) for shard in shards)
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())
    assert store.commit.documents == 902
    assert update(store, shards, Run(embedded)).counted == 0


def test_an_inbox_does_not_take_the_counts_of_another(two, embedded, planted, serve_at, tmp_path):
    one, _, inbox = two
    second = tmp_path / "second"
    accumulator = accumulator_of(one, inbox, embedded)
    for place in (inbox, second):
        with serve_at(one, inbox=str(place)) as client:
            client.send([{"text": planted[0]}])
        if place == inbox:
            assert due(accumulator).counted == 1
    SealLog(Inbox.open(str(second))).seal_next()
    config = tmp_path / "service.toml"
    config.write_text(f'store = "{one}"\ninbox = "{second}"\n')
    told = CliRunner().invoke(cli, ["inbox", "assign", str(config)], catch_exceptions=False).output
    assert told == f"{second} belongs to {one} now (before: {one})\n"


def test_a_batch_that_was_copied_before_it_was_sealed_counts_once(
    two, embedded, planted, serve_at, tmp_path
):
    one, _, inbox = two
    accumulator = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        client.send([{"text": planted[0]}])
    copy = shutil.copytree(inbox, tmp_path / "copy")
    assert due(accumulator).counted == 1
    SealLog(Inbox.open(str(copy))).seal_next()
    listed = list_shards([f"{copy}/sealed/**/*.jsonl"])
    with pytest.raises(InvalidInput, match="the inbox with 1 sealed shard has moved"):
        update(MomentStore.open(str(one)), listed, Run(embedded))


def test_an_accumulator_writes_nothing_where_its_store_is_gone(two, embedded, planted, serve_at):
    one, _, inbox = two
    accumulator = accumulator_of(one, inbox, embedded)
    with serve_at(one, inbox=str(inbox)) as client:
        client.send([{"text": planted[0]}])
        due(accumulator)
        client.send([{"text": planted[1]}])
        away = one.rename(one.with_name("away"))
        with pytest.raises(StoreError, match="there is no store"):
            due(accumulator)
        assert not one.exists()
        away.rename(one)
        assert due(accumulator).counted == 1


def test_a_new_store_at_the_place_of_the_old_does_not_get_its_inbox(
    serve_at, two, unfitted, tmp_path
):
    one, _, inbox = two
    with serve_at(one, inbox=str(inbox)) as client:
        shutil.rmtree(one)
        shutil.copytree(unfitted, one)
        client.service.current.look()
        assert client.send([{"text": "the sea"}]).status_code == 503
        assert client("GET", "/readyz").json()["problems"] == ["counting", "owner"]

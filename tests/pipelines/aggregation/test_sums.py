"""Sums that stay on the workers: the same bits however many hold them, and whatever is lost."""

import asyncio
import socket
from dataclasses import replace
from datetime import timedelta
from itertools import product
from threading import Event
from types import SimpleNamespace

import memory_of_sums
import numpy as np
import pytest
from distributed import Security
from forking import PATIENCE, forking

from streaming_moments.pipelines.aggregation import counting, exchange, reduction, sums
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.aggregation.bundles import Receipt
from streaming_moments.pipelines.aggregation.freeze import settle
from streaming_moments.pipelines.aggregation.reduction import Reduction
from streaming_moments.pipelines.aggregation.sums import (
    Opening,
    ProcessSums,
    SumsAstray,
    process_sums,
)
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import segment_folder
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="module")
def four(workers_of_sums):
    with workers_of_sums(4) as cluster:
        yield cluster


def small(store, cluster, **changes):
    plan = plan_of(store, Run(cluster))
    return replace(plan, lump_bytes=10_000, batch_bytes=4096, **changes)


@pytest.mark.parametrize("passes", [1, 2, 8])
@pytest.mark.parametrize("group_shards", [2, 1000])
def test_four_workers_give_the_bits_of_one(store, undisturbed, four, passes, group_shards):
    _, listed, expected = undisturbed
    plan = small(store, four, passes=passes, group_shards=group_shards)
    found = update(store, listed, Run(four), plan=plan).store
    assert found.load() == expected.load()
    assert set(found.ledger()) == set(expected.ledger())
    assert found.verify() == []
    held = four.client.run(lambda dask_worker: list(process_sums(dask_worker)._held))
    assert not any(held.values()), "nothing stays behind"


@pytest.mark.parametrize("passes", [1, 8])
def test_rows_go_by_in_messages_below_their_bound(store, undisturbed, four, monkeypatch, passes):
    _, listed, expected = undisturbed
    monkeypatch.setattr(exchange, "MESSAGE_BYTES", 1000)
    sent = []
    rows = ProcessSums.rows

    def noted(self, owner, token, index, wanted):
        found = rows(self, owner, token, index, wanted)
        if wanted != slice(None):
            sent.append(sum(array.nbytes for array in found.values()))
        return found

    add_theirs, reducers = sums.add_theirs, set()

    async def reducing(worker, *asked):
        reducers.add(worker.address)
        return await add_theirs(worker, *asked)

    monkeypatch.setattr(ProcessSums, "rows", noted)
    monkeypatch.setattr(sums, "add_theirs", reducing)
    found = update(store, listed, Run(four), plan=small(store, four, passes=passes)).store
    assert found.load() == expected.load()
    # with more workers than blocks several add up rows of one
    assert (len(reducers) > 1) == (passes == 8)
    row = store.layout.block_bytes // store.layout.block(0).size(store.basis.n_words)
    assert 0 < max(sent) <= max(1000, row + 8 * store.basis.core)


@pytest.mark.parametrize(
    ("moment", "passes"),
    [
        *product(["counting", "settling", "reducing", "skipping"], [1, 2]),
        ("reducing", 8),  # in pieces
    ],
)
def test_only_what_lost_sums_held_is_counted_again(
    store, undisturbed, four, monkeypatch, moment, passes, tmp_path, planted
):
    _, listed, expected = undisturbed
    counted, lost, struck = [], [], []
    count_shards, freeze = counting.count_shards, ProcessSums.freeze

    def noted(part, *arguments):
        counted.extend(shard.url for shard in part)
        return count_shards(part, *arguments)

    def lose(held):
        if not struck and held._held:
            [(owner, sums)] = held._held.items()
            struck.append(sums.nonce)
            lost.extend(shard for one in sums.included.values() for shard in one.counted)
            held.discard(owner, sums.nonce)

    def frozen(self, *arguments):
        if moment in ("settling", "skipping"):
            lose(self)
        return freeze(self, *arguments)

    def dying(self, sums, *arguments):
        if moment == "counting":
            lose(self)
        return finished(self, sums, *arguments)

    finished = ProcessSums.finished
    monkeypatch.setattr(counting, "count_shards", noted)
    monkeypatch.setattr(ProcessSums, "freeze", frozen)
    monkeypatch.setattr(ProcessSums, "finished", dying)
    rows = ProcessSums.rows

    def asked(self, owner, token, index, wanted):
        # by another worker, not its own
        if moment == "reducing" and wanted != slice(None):
            lose(self)
        return rows(self, owner, token, index, wanted)

    monkeypatch.setattr(ProcessSums, "rows", asked)
    skip = moment == "skipping"
    if skip:
        (tmp_path / "late.txt").write_bytes("\n".join(planted[:300]).encode() + b"\n\xff\n")
    more = list_shards([str(tmp_path / "late.txt")]) if skip else []
    plan = small(store, four, passes=passes)
    result = update(store, [*more, *listed], Run(four), skip_bad_shards=skip, plan=plan)
    assert result.store.load() == expected.load()
    assert [error.url for error in result.bad] == [shard.url for shard in more]
    assert result.store.verify() == []
    if not skip:
        again = len(counted) - passes * len(listed)
        assert struck
        # the task itself, where it was counting
        assert again <= len(lost) + (moment == "counting") * len(listed)


def test_a_task_that_ran_twice_makes_its_sums_worth_nothing(store, four):
    held = opened_sums()
    opening = Opening("client/job", 1, 0, range(store.row_blocks))
    receipt = Receipt("", (), (), store.foundation.totals({}))
    with held.counting(opening, store.layout, 7) as sums:
        held.finished(sums, opening, 7, receipt)
    with held.counting(opening, store.layout, 8) as same:
        assert same is sums
        held.finished(sums, opening, 8, receipt)
    client = SimpleNamespace(
        run=lambda function, *asked, **_: {
            "tcp://here": function(*asked, dask_worker=SimpleNamespace(plugins={held.name: held}))
        }
    )
    mine = {7: replace(receipt, nonce=sums.nonce)}
    settled = settle(client, opening, mine)
    assert (settled.sources, settled.void) == ((), {7})
    assert held.rows("client/job", sums.token, 0, slice(None)) is None


def test_a_task_of_before_the_freeze_adds_nothing(store):
    held = opened_sums()
    opening = Opening("client/job", 1, 0, range(store.row_blocks))
    receipt = Receipt("", (), (), store.foundation.totals({}))
    with held.counting(opening, store.layout, 1) as sums:
        held.finished(sums, opening, 1, receipt)
    frozen = held.freeze("client/job", 1, 1)
    assert (frozen.nonce, frozen.included) == (sums.nonce, (1,))
    with pytest.raises(SumsAstray), held.counting(opening, store.layout, 2):
        raise AssertionError("it was let in")
    later = replace(opening, epoch=1)
    # one that adds while they are frozen is waited for by nobody
    with held.counting(later, store.layout, 3) as same:
        assert same is sums
        assert held.freeze("client/job", 1, 2) is None
        with pytest.raises(SumsAstray):
            held.finished(same, later, 3, receipt)
    held.release("client/job")
    with pytest.raises(SumsAstray), held.counting(later, store.layout, 4):
        raise AssertionError("the job is over")


def test_rows_are_read_as_they_were_frozen_or_not_at_all(store):
    held = opened_sums()
    opening = Opening("client/job", 1, 0, range(store.row_blocks))
    receipt = Receipt("", (), (), store.foundation.totals({}))

    def readable(token):
        return held.rows("client/job", token, 0, slice(None)) is not None

    with held.counting(opening, store.layout, 1) as sums:
        assert not readable(sums.token)
        assert not readable("")
        held.finished(sums, opening, 1, receipt)
    first = held.freeze("client/job", 1, 1).token
    assert readable(first)
    assert not readable(sums.nonce)
    second = held.freeze("client/job", 1, 2).token
    assert readable(second)
    assert not readable(first)
    # what another worker has lost is counted here as well
    later = replace(opening, epoch=2)
    with held.counting(later, store.layout, 2) as same:
        assert same is sums
        assert not readable(second)
        held.finished(same, later, 2, receipt)
    assert not readable(second)
    assert readable(held.freeze("client/job", 1, 3).token)


@pytest.fixture(scope="module")
def memory(undisturbed, shards):
    """What sums hold, and take, in a process without other threads: see `memory_of_sums.py`."""
    context = forking()
    told, tells = context.Pipe(duplex=False)
    with told, tells:
        process = context.Process(
            target=memory_of_sums.tell, args=(tells, str(undisturbed[0]), str(shards))
        )
        process.start()
        tells.close()
        found = told.recv()
        process.join(PATIENCE)
    assert process.exitcode == 0
    return found


def test_sums_that_are_given_up_hold_nothing_whoever_still_adds_to_them(memory):
    assert memory["held"] >= memory["state"]
    assert len(memory["given up"]) == 6
    for way, (peak, astray) in memory["given up"].items():
        assert peak < 1.5 * memory["state"], way
        assert astray, way


def test_what_is_taken_away_takes_no_memory_of_a_block(memory):
    assert memory["nothing left"]
    assert memory["taking"] < memory["adding"] + memory["block"] / 10


def test_what_a_killed_job_has_left_is_given_up_by_the_next(store, undisturbed, four):
    _, listed, _ = undisturbed
    opening = Opening("Client-that-was-killed/job", 1, 0, range(store.row_blocks))

    def leave(dask_worker):
        process_sums(dask_worker)._entered(opening, store.layout, 1)

    update(store, listed[:1], Run(four))
    four.client.run(leave)
    update(store, listed[:2], Run(four))
    held = four.client.run(lambda dask_worker: list(process_sums(dask_worker)._held))
    assert not any(held.values())


def test_many_small_shards_are_one_task(tmp_path, store, embedded, planted, monkeypatch):
    for number in range(400):
        (tmp_path / f"{number:03}.txt").write_text(planted[number])
    (tmp_path / "200.txt").write_bytes(b"\xff")
    counted = []
    count_shards = counting.count_shards

    def noted(part, *arguments):
        counted.append(len(part))
        return count_shards(part, *arguments)

    monkeypatch.setattr(counting, "count_shards", noted)
    listed = list_shards([str(tmp_path / "*.txt")])
    result = update(store, listed, Run(embedded), skip_bad_shards=True)
    assert (sum(counted), result.counted) == (400, 399)
    assert [error.url for error in result.bad] == [listed[200].url]
    assert len(counted) <= 8 * embedded.threads
    assert len(result.store.ledger()) == 399


def opened_sums():
    held = ProcessSums()
    held.setup(SimpleNamespace(handlers={}))
    return held


@pytest.mark.parametrize("listening", [False, True])
def test_where_nobody_listens_is_not_dialled_again(four, monkeypatch, listening):
    connect, dialled = exchange.connect, []

    async def dialling(address, timeout, **options):
        dialled.append(timeout)
        if listening and len(dialled) == 1:
            raise OSError("it is busy")
        return await connect(address, timeout, **options)

    monkeypatch.setattr(exchange, "connect", dialling)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    address = four.addresses()[0] if listening else dead
    worker, asked = SimpleNamespace(security=Security()), {"op": exchange.TAKE, "owner": "nobody"}
    with pytest.raises(exchange.SumsLost, match=address):
        asyncio.run(
            exchange.add_theirs(
                worker, address, asked | {"token": "", "index": 0}, 0, {"a": np.zeros(1)}
            )
        )
    assert (len(dialled) == 2) == listening


def test_workers_that_never_reach_one_another_end_the_update(store, shards, four, monkeypatch):
    def unreached(*_):
        raise exchange.SumsLost("tcp://10.0.0.7:1 does not answer")

    monkeypatch.setattr(ProcessSums, "rows", unreached)
    with pytest.raises(WorkersLost, match=r"11 times in a row: .*10.0.0.7:1 does not answer"):
        update(store, list_shards([str(shards)]), Run(four))
    assert MomentStore.open(store.url).version == store.version


def test_sums_that_are_lost_and_counted_again_end_no_update(store, undisturbed, four, monkeypatch):
    _, listed, expected = undisturbed
    run, rows, begun, lost, ended = Reduction.run, ProcessSums.rows, [], [], []

    def counted(*arguments):
        begun.append(arguments)
        ended.append(run(*arguments))
        return ended[-1]

    def dying(held, owner, token, index, wanted):
        # once in each run, of another row block
        if len(lost) < len(begun) <= 15 and index == len(begun) % 8:
            sums = held._held.get(owner)
            if sums is not None and sums.token == token:
                lost.append(index)
                held.discard(owner, sums.nonce)
        return rows(held, owner, token, index, wanted)

    monkeypatch.setattr(Reduction, "run", counted)
    monkeypatch.setattr(ProcessSums, "rows", dying)
    found = update(store, listed, Run(four), plan=small(store, four)).store
    assert ended == [False] * 15 + [True]
    assert found.load() == expected.load()
    assert found.verify() == []


def test_deaths_of_one_row_block_after_the_other_end_the_update(store, shards, four, monkeypatch):
    run, rows, begun, lost = Reduction.run, ProcessSums.rows, [], []

    def counted(*arguments):
        begun.append(arguments)
        return run(*arguments)

    def dying(held, owner, token, index, wanted):
        # whatever is asked of it first in a run: without its sums no block is written
        sums = held._held.get(owner)
        if len(lost) < len(begun) and sums is not None and sums.token == token:
            lost.append(index)
            held.discard(owner, sums.nonce)
        return rows(held, owner, token, index, wanted)

    def blamed(_, running):
        return {list(running)[len(lost) % len(running)].key: 1}

    monkeypatch.setattr(reduction, "_DEATHS", 3)
    monkeypatch.setattr(reduction, "deaths_of", blamed)
    monkeypatch.setattr(Reduction, "run", counted)
    monkeypatch.setattr(ProcessSums, "rows", dying)
    with pytest.raises(WorkersLost, match="died 4 times .* or of other blocks. Give"):
        update(store, list_shards([str(shards)]), Run(four), plan=small(store, four))
    assert MomentStore.open(store.url).version == store.version


@pytest.mark.parametrize(("passes", "struck"), [(1, 0), (1, 7), (2, 7), (8, 5)])
def test_a_writer_taken_for_dead_never_reaches_what_is_committed(
    store, undisturbed, four, monkeypatch, passes, struck
):
    _, listed, expected = undisturbed
    write, late = SegmentWriter.write_block, []

    def delayed(writer, statistics):
        if not late and statistics.block.index == struck:
            late.append((writer, statistics))
            raise exchange.SumsLost("it lives, but nobody hears of it")
        return write(writer, statistics)

    monkeypatch.setattr(SegmentWriter, "write_block", delayed)
    found = update(store, listed, Run(four), plan=small(store, four, passes=passes)).store
    [(writer, statistics)] = late
    # it added up what others had counted on with meanwhile
    write(writer, statistics + statistics)
    assert found.verify() == []
    assert found.load() == expected.load()
    left = [heap.path for heap in find_garbage(found.folder, timedelta(0))]
    assert left == [segment_folder(writer.id)], "gc takes what it has left"


def test_a_run_that_lost_sums_waits_for_none_of_its_writers(store, undisturbed, four, monkeypatch):
    _, listed, expected = undisturbed
    write, segments, begun_again, waited = SegmentWriter.write_block, [], Event(), []

    def stuck(writer, statistics):
        segments.append(writer.id)
        if writer.id != segments[0]:
            begun_again.set()
        elif statistics.block.index == 0:
            raise exchange.SumsLost("the peer is dead")
        else:
            waited.append(begun_again.wait(30))
        return write(writer, statistics)

    monkeypatch.setattr(SegmentWriter, "write_block", stuck)
    found = update(store, listed, Run(four), plan=small(store, four)).store
    assert begun_again.is_set()
    assert all(waited)
    assert found.load() == expected.load()
    assert found.verify() == []

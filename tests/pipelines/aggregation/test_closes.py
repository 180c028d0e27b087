"""When a group closes, and what its close asks of each worker."""

from collections import Counter, deque
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.pipelines.aggregation import group_runner, group_state, reduction, sums
from streaming_moments.pipelines.aggregation.aggregation import gathering_on, plan_of
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.aggregation.group_state import Group
from streaming_moments.pipelines.aggregation.reduction import Reduction, pieces_of
from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update


@pytest.fixture
def clock(monkeypatch):
    """A clock of groups and closes that goes on by what tests say a bundle and a close take."""
    told = SimpleNamespace(now=0.0, bundle=0.0, close=0.0)
    take, run = Group.take, Reduction.run

    def taking(self, bundle):
        told.now += told.bundle
        return take(self, bundle)

    def reducing(self, *arguments):
        told.now += told.close
        return run(self, *arguments)

    timed = SimpleNamespace(monotonic=lambda: told.now)
    monkeypatch.setattr(group_state, "time", timed)
    monkeypatch.setattr(group_runner, "time", timed)
    monkeypatch.setattr(group_runner, "Group", lambda *given: Group(*given, begun=told.now))
    monkeypatch.setattr(Group, "take", taking)
    monkeypatch.setattr(Reduction, "run", reducing)
    return told


@pytest.mark.parametrize(
    ("commit_every", "bundle", "close", "passes", "counted"),
    [
        (600.0, 300.0, 0.0, 1, [2, 2, 2]),
        # a minute at least
        (0.0, 59.0, 0.0, 1, [2, 2, 2]),
        # and 20 times the close, once that is known
        (60.0, 60.0, 6.0, 1, [1, 2, 2, 1]),
        # of which there is one for each share of the rows, as the shards are read for each
        (60.0, 30.0, 3.0, 2, [1, 2, 2, 1]),
    ],
)
def test_a_group_closes_by_time(
    store, undisturbed, embedded, clock, commit_every, bundle, close, passes, counted
):
    _, listed, expected = undisturbed
    clock.bundle, clock.close = bundle, close
    run = Run(embedded, commit_every=commit_every)
    plan = replace(plan_of(store, run), passes=passes)
    found = update(store, listed, run, plan=plan).store
    assert [part.shards for part in found.commit.segments] == counted
    assert found.load() == expected.load()


def test_the_close_of_a_group_is_that_of_all_its_passes(store, undisturbed, embedded, clock):
    _, listed, _ = undisturbed
    clock.close = 5.0
    run = Run(embedded)
    with gathering_on(store, run, replace(plan_of(store, run), passes=4)) as gathering:
        group_runner.gather_group(gathering, deque([Bundle(tuple(listed))]), 0, len(listed))
    assert gathering.pace.close == 20.0


@given(st.integers(8, 300), st.integers(2, 1000))
def test_no_worker_receives_a_fifth_more_than_an_even_share(blocks, workers):
    received = Counter()
    for place in range(blocks):
        pieces = pieces_of(place, blocks, workers)
        for piece in range(pieces):
            received[(place * pieces + piece) % workers] += (workers - 1) / pieces
        received[place % workers] += pieces > 1
    even = blocks * (workers - 1) / workers
    # or the one block that it puts together
    assert max(received.values()) <= max(1.2 * even, even + 1)


def test_blocks_that_do_not_come_out_even_are_shared(
    store, undisturbed, workers_of_sums, monkeypatch
):
    _, listed, expected = undisturbed
    received, held = Counter(), []
    add_theirs, run = reduction.add_theirs, Reduction.run

    async def noted(worker, address, asked, first, arrays, **patience):
        if address != worker.address:
            received[worker.address] += sum(array.nbytes for array in arrays.values())
        return await add_theirs(worker, address, asked, first, arrays, **patience)

    def counted(self, gathering, opening, sources):
        held.append(len(sources))
        return run(self, gathering, opening, sources)

    monkeypatch.setattr(reduction, "add_theirs", noted)
    monkeypatch.setattr(sums, "add_theirs", noted)
    monkeypatch.setattr(Reduction, "run", counted)
    with workers_of_sums(len(listed), threads=1) as cluster:
        found = update(store, listed, Run(cluster)).store
    assert found.load() == expected.load()
    # of eight blocks two whole ones would be 1.5 times what comes to each of six workers alike
    [workers] = held
    assert max(received.values()) <= 1.2 * store.layout.state_bytes * (workers - 1) / workers


def test_row_shares_that_are_read_one_after_the_other_are_said_before(store, undisturbed, embedded):
    _, listed, expected = undisturbed
    lines = []
    run = Run(embedded, tell=lines.append)
    found = update(store, listed, run, plan=replace(plan_of(store, run), passes=3)).store
    assert found.load() == expected.load()
    assert [str(line) for line in lines] == [
        "a worker cannot hold the sums of all row blocks "
        f"({mebibytes(store.layout.state_bytes)}), so the shards are read 3 times, each "
        "time for some of the blocks. A larger --memory, or fewer threads for each worker, "
        "avoids that"
    ]

"""Shards that turn bad when some of them was added: taken away, whoever holds what of them."""

from collections import Counter
from dataclasses import replace

import pytest
from distributed import Client

from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.sums import ProcessSums
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards


@pytest.fixture(scope="module")
def three(workers_of_sums):
    """Three workers of a thread each."""
    with workers_of_sums(3, threads=1) as cluster:
        yield cluster


@pytest.fixture
def late(tmp_path, planted):
    """A shard that cannot be read to its end, and is larger than several lumps."""
    (tmp_path / "late.txt").write_bytes("\n".join(planted[:300]).encode() + b"\n\xff\n")
    [shard] = list_shards([str(tmp_path / "late.txt")])
    return shard


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(
    ("lost", "reads"),
    [
        ((), 2),
        (("it was added",), 2),
        (("it was taken away",), 3),
        (("it was added", "it was taken away"), 2),
        (("neither",), 2),
    ],
)
def test_what_was_added_of_a_bad_shard_is_taken_away(
    store, undisturbed, late, three, monkeypatch, lost, reads, passes
):
    _, listed, expected = undisturbed
    places = dict(
        zip(three.addresses(), ("it was added", "it was taken away", "neither"), strict=True)
    )
    submit, prepared, freeze = Client.submit, ReadingContext.prepared, ProcessSums.freeze
    read, gone = Counter(), set()

    def placed(client, function, *arguments, **options):
        # the bad shard, its taking away and the others each where they belong
        bundle = arguments[0] if arguments else None
        if isinstance(bundle, Bundle) and late in bundle.shards:
            wanted = "it was taken away" if bundle.taken else "it was added"
            [place] = [address for address, role in places.items() if role == wanted]
            options |= {"workers": place, "allow_other_workers": False}
        return submit(client, function, *arguments, **options)

    def noted(context, shard, *arguments):
        read[shard.url] += 1
        return prepared(context, shard, *arguments)

    def frozen(held, owner, *arguments):
        role = places[held._worker.address]
        if role in lost and role not in gone:
            gone.add(role)
            held._held.pop(owner, None)
        return freeze(held, owner, *arguments)

    monkeypatch.setattr(Client, "submit", placed)
    monkeypatch.setattr(ReadingContext, "prepared", noted)
    monkeypatch.setattr(ProcessSums, "freeze", frozen)
    plan = replace(plan_of(store, Run(three)), lump_bytes=10_000, batch_bytes=4096, passes=passes)
    result = update(store, [late, *listed], Run(three), skip_bad_shards=True, plan=plan)
    assert result.store.load() == expected.load()
    assert set(result.store.ledger()) == set(expected.ledger())
    assert [error.url for error in result.bad] == [late.url]
    assert result.store.verify() == []
    assert gone == set(lost)
    assert read.pop(late.url) == reads
    if not lost:
        assert read == {shard.url: passes for shard in listed}, "no other shard is read again"

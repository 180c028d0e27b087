"""Listed shards beside the ledger: what is new, what is changed, and what it costs to tell."""

import hashlib
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import compare
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.shards import Shard


@dataclass
class Told:
    """Progress that is kept: (done, total) of every task that ended."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    def advance(self, step, done, total):
        assert step == "checking counted shards"
        self.steps.append((done, total))


MARKS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["1", "2"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(MARKS, MARKS)
def test_marks_of_the_storage_are_compared_without_a_task(embedded, counted, listed):
    records = {url: ShardRecord(url, 3, f"etag:{mark}", 1, 2) for url, mark in counted.items()}
    half = len(records) // 2
    parts = list(records.values())[:half], list(records.values())[half:]
    ledger = Ledger({str(place): table_of(part) for place, part in enumerate(parts)})
    shards = [Shard(url, 3, mark) for url, mark in sorted(listed.items())]
    told = Told()
    compared = compare(ledger, shards, Run(embedded, told))
    assert compared.new == [shard for shard in shards if shard.url not in counted]
    assert compared.changed == tuple(
        (shard, records[shard.url], f"etag:{shard.etag}")
        for shard in shards
        if shard.url in counted and counted[shard.url] != shard.etag
    )
    assert compared.same == sum(counted.get(url) == mark for url, mark in listed.items())
    assert told.steps == []


def test_files_without_marks_are_hashed_a_hundred_a_task(embedded, tmp_path):
    number = 16 * 2 * embedded.threads * embedded.workers * 25 + 7
    for place in range(number):
        (tmp_path / f"{place}.jsonl").write_bytes(b"%d" % place)
    shards = list_shards([str(tmp_path)])
    hashes = {f"{tmp_path}/{i}.jsonl": hashlib.sha256(b"%d" % i).hexdigest() for i in range(number)}
    records = [ShardRecord(one.url, one.size, f"sha256:{hashes[one.url]}", 1, 2) for one in shards]
    new, changed = shards[number // 2], shards[3]
    records.remove(next(one for one in records if one.url == new.url))
    records[3] = ShardRecord(changed.url, 9, "etag:elsewhere", 1, 2)
    ledger, told = Ledger({"0": table_of(records)}), Told()
    compared = compare(ledger, shards, Run(embedded, told))
    assert compared.new == [new]
    assert compared.same == number - 2
    assert compared.changed == ((changed, records[3], f"sha256:{hashes[changed.url]}"),)
    assert len(told.steps) == -(-(number - 1) // 100)
    assert told.steps[-1] == (number - 1, number - 1)
    # few files are shared out
    told.steps.clear()
    compare(ledger, shards[:3], Run(embedded, told))
    assert told.steps == [(1, 3), (2, 3), (3, 3)]


def test_a_counted_file_that_is_gone_is_named(embedded, tmp_path):
    gone = Shard(f"{tmp_path}/gone.txt", 3)
    ledger = Ledger({"0": table_of([ShardRecord(gone.url, 3, "sha256:0", 1, 2)])})
    with pytest.raises(ShardError, match="gone.txt: does not exist"):
        compare(ledger, [gone], Run(embedded))


def test_a_new_shard_in_a_counted_folder_is_refused(embedded):
    ledger = Ledger({"0": table_of([ShardRecord("/t/", 3, "sha256:0", 1, 2)])})
    with pytest.raises(InvalidInput, match=r"/t/a lies within /t/, which is counted"):
        compare(ledger, [Shard("/t/a", 3, "1")], Run(embedded))

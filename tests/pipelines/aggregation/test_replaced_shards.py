"""Shards replaced after they were marked, by others of the same size and time: never counted."""

import os

import pytest

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting import reading
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat, fingerprint
from streaming_moments.storage.store.store import MomentStore

OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


def swapped(path):
    """Write other content of the same size in place, with the same time of change."""
    state, content = path.stat(), path.read_bytes()
    path.write_bytes(content[::-1])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.fixture(params=["file", "folder"])
def shard(request, tmp_path, planted):
    path = tmp_path / "shard.txt"
    if request.param == "folder":
        (tmp_path / "shard").mkdir()
        path = tmp_path / "shard" / "document"
    path.write_text("\n".join(planted[:200]))
    [listed] = list_shards([str(path if request.param == "file" else path.parent)])
    return listed, path


@pytest.fixture
def store(tmp_path, shards, embedded, shard):
    pilot = list_shards([str(shards)])
    form = ShardFormat()
    return create(str(tmp_path / "store"), pilot, form, TokenPolicy(), OPTIONS, Run(embedded))


@pytest.fixture
def replaced(shard, monkeypatch):
    """The shard is replaced between the hash and the first byte that is read to be counted."""
    read, (listed, path) = reading.read_indexed, shard

    def late(reading, *arguments):
        if reading == listed:
            swapped(path)
        return read(reading, *arguments)

    return lambda: monkeypatch.setattr(reading, "read_indexed", late)


def test_an_update_never_counts_other_content_than_the_ledger_says(
    store, shard, embedded, replaced
):
    replaced()
    with pytest.raises(ShardError, match="changed while it was read; list and read it again"):
        update(store, [shard[0]], Run(embedded))
    assert store.latest().version == 0
    result = update(store, [shard[0]], Run(embedded), skip_bad_shards=True)
    assert [error.url for error in result.bad] == [shard[0].url]
    assert result.counted == 0


def test_what_is_forgotten_is_what_was_counted(store, shard, embedded, replaced):
    store = update(store, [shard[0]], Run(embedded)).store
    replaced()
    with pytest.raises(ShardError, match="changed while it was read"):
        forget(store, [shard[0]], Run(embedded))
    assert store.latest().version == store.version


def test_a_rebase_counts_what_was_counted(store, shard, shards, embedded, replaced):
    store = update(store, [shard[0], *list_shards([str(shards)])], Run(embedded)).store
    before, mark = store.load(), fingerprint(shard[0])
    replaced()
    with pytest.raises(ShardError, match="changed while it was read"):
        rebase(store, Run(embedded))
    left = MomentStore.open(store.url)
    assert left.load() == before
    assert left.ledger().find(shard[0].url).fingerprint == mark

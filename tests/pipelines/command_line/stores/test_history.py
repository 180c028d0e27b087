"""The commands of a store's history: what they print, their exit codes, and exact states."""

import json
import shutil
from pathlib import Path

import pytest
from counted_alone import counted_at

from streaming_moments.pipelines.aggregation import group_runner as module
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import forget as forgetting
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="module")
def counted(tmp_path_factory, shards, embedded):
    """A store of six shards in two segments."""
    folder = tmp_path_factory.mktemp("history") / "store"
    listed = list_shards([str(shards)])
    options = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
    store = create(str(folder), listed, ShardFormat(), TokenPolicy(), options, Run(embedded))
    store = update(store, listed[:3], Run(embedded)).store
    update(store, listed, Run(embedded))
    return folder


@pytest.fixture
def store(tmp_path, counted):
    shutil.copytree(counted, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


def files(shards):
    return sorted(Path(shards).iterdir())


def test_rollback_diff_and_verify(run, store):
    assert run("verify", store.url) == (0, "version 2 is sound\n", "")
    code, out, _ = run("diff", store.url, 1, 2, "--json")
    found = json.loads(out)
    assert (code, found["documents"], len(found["added"]), found["removed"]) == (0, 450, 3, [])
    assert "+450 documents" in run("diff", store.url, "1", "2")[1]
    code, out, _ = run("rollback", store.url, 1)
    assert (code, out) == (0, "version 3: restored version 1\n")
    assert "rollback to version 1" in run("log", store.url)[1]
    assert json.loads(run("rollback", store.url, 2, "--json")[1])["documents"] == 900
    code, _, err = run("rollback", store.url, 9)
    assert (code, err.count("\n")) == (2, 1)
    [chunk, *_] = Path(store.url).glob("segments/*/word_counts/c*")
    chunk.write_bytes(b"")
    code, out, _ = run("verify", store.url)
    assert code == 2
    assert str(chunk) in out
    assert len(json.loads(run("verify", store.url, "--json")[1])["problems"]) == out.count("\n")


def test_tags_are_names_of_models(run, store):
    for name, topics in (("first", 2), ("second", 3)):
        assert run("refit", store.url, "--topics", topics, "--name", name)[0] == 0
    assert run("tag", store.url, "live", "first")[1] == "version 5: live is model first\n"
    assert json.loads(run("topics", store.url, "--model", "live", "--json")[1])["model"] == "first"
    moved = json.loads(run("tag", store.url, "live", "second", "--json")[1])
    assert moved["tags"] == {"live": "second"}
    found = json.loads(run("diff", store.url, 5, 6, "--model", "live", "--json")[1])
    assert len(found["moved"]["live"]["pairs"]) == 2
    assert len(found["moved"]["live"]["new"]) == 1
    assert "topics of live: first to second" in run("diff", store.url, 5, 6)[1]
    assert "live is second" in run("status", store.url)[1]
    assert "live" in run("topics", store.url, "--model", "absent")[2]


NO_GARBAGE = "nothing to delete: no interrupted writer left files that are old enough\n"


def test_compact_and_gc(run, store, embedded):
    before = store.load()
    assert "2 segments merged into 1" in run("compact", store.url)[1]
    after = store.latest()
    assert (after.load(), len(after.commit.segments)) == (before, 1)
    assert compact(after, Run(embedded)).version == after.version
    assert run("verify", store.url)[0] == 0
    store.write_segment(before, list(store.ledger()))
    code, out, _ = run("gc", store.url)
    assert (code, out) == (0, NO_GARBAGE)
    shown = json.loads(run("gc", store.url, "--dry-run", "--grace", "0d", "--json")[1])
    assert (len(shown["garbage"]), shown["dry_run"]) == (1, True)
    assert "would be freed in 1 place" in run("gc", store.url, "--dry-run", "--grace", "0s")[1]
    assert "freed in 1 place" in run("gc", store.url, "--grace", "0s")[1]
    assert run("gc", store.url, "--grace", "0s")[1] == NO_GARBAGE
    assert store.at(2).load() == before
    assert "write for example 7d" in run("gc", store.url, "--grace", "soon")[2]


def test_update_compacts_when_there_are_many_segments(run, store, shards):
    rollback(store, 1)
    assert run("update", store.url, shards, "--compact-after", "0")[0] == 0
    assert len(store.latest().commit.segments) == 2
    done = json.loads(run("update", store.url, shards, "--compact-after", "2", "--json")[1])
    assert (done["segments"], done["counted"]) == (1, 0)
    assert store.latest().commit.operation == "compact"
    assert store.latest().load() == store.load()


def test_forget_leaves_what_the_other_shards_make(run, store, shards):
    one, two, *rest = files(shards)
    code, out, err = run("forget", store.url, one, two)
    said = "version 3: 2 shards forgotten; updates will skip them\n"
    assert (code, out) == (0, said), err
    assert store.latest().load() == counted_at(store, rest)
    assert store.latest().verify() == []
    code, _, err = run("forget", store.url, one)
    assert code == 2
    assert "is already forgotten" in err
    assert run("compact", store.url)[0] == 0
    assert store.latest().load() == counted_at(store, rest)
    assert run("update", store.url, shards, "--include-forgotten")[0] == 0
    assert store.latest().load() == store.load()


def test_forget_and_replace_ask_for_the_content_that_was_counted(run, tmp_path, planted, counted):
    shutil.copytree(counted, tmp_path / "store")
    store = rollback(MomentStore.open(str(tmp_path / "store")), 0)
    a, b, copy = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "copy.txt"
    a.write_text("\n".join(planted[:40]))
    b.write_text("\n".join(planted[40:80]))
    assert run("update", store.url, a, b)[0] == 0
    shutil.copy(a, copy)
    a.write_text("\n".join(planted[100:130]))
    version, there = store.latest().version, tmp_path / "store"
    for arguments, said in (
        (("forget", store.url, a), "was counted as sha256:"),
        (("update", store.url, a, b), f"with `streaming-moments update {there} {a} --replace`"),
        (("update", store.url, a, b, "--replace"), "the old content of 1 changed shard is needed"),
        (("update", store.url, a, "--replace", "--old", b), "no segment holds its counts alone"),
        (("update", store.url, a, "--old", copy), "give both"),
    ):
        code, _, err = run(*arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert said in err
    assert store.latest().version == version
    code, out, err = run("update", store.url, a, b, "--replace", "--old", copy)
    assert code == 0, err
    assert "1 counted before, 1 replaced" in out
    latest = store.latest()
    assert (latest.version, latest.commit.operation) == (version + 1, "replace")
    assert latest.load() == counted_at(store, [a, b])
    assert latest.verify() == []
    assert run("update", store.url, a, b)[1].endswith("2 counted before\n")


@pytest.fixture
def apart(tmp_path, counted, planted, embedded):
    """A store of two shards, each in a segment of its own, the first with new content since."""
    shutil.copytree(counted, tmp_path / "store")
    store = rollback(MomentStore.open(str(tmp_path / "store")), 0)
    places = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for number, place in enumerate(places):
        place.write_text("\n".join(planted[40 * number : 40 * number + 40]))
        store = update(store, list_shards([str(place)]), Run(embedded)).store
    places[0].write_text("\n".join(planted[100:130]))
    return store, places


def test_old_content_alone_in_a_segment_need_not_be_given(run, apart):
    store, places = apart
    code, out, err = run("update", store.url, *places, "--replace")
    assert code == 0, err
    assert "1 counted before, 1 replaced" in out
    latest = store.latest()
    assert (latest.version, latest.commit.operation) == (store.version + 1, "replace")
    assert latest.load() == counted_at(store, places)
    assert [part.sign for part in latest.commit.segments] == [1, 1]
    assert latest.verify() == []
    assert store.load() == store.at(store.version).load(), "the version before is whole"


def test_old_content_compacted_meanwhile_must_be_given(
    run, apart, tmp_path, planted, embedded, monkeypatch
):
    store, places = apart
    gather = forgetting.gather_all

    def overtaken(*arguments):
        monkeypatch.undo()
        compact(store, Run(embedded))
        return gather(*arguments)

    monkeypatch.setattr(forgetting, "gather_all", overtaken)
    code, _, err = run("update", store.url, *places, "--replace")
    assert (code, err.count("\n")) == (2, 1)
    assert "give copies of the old content by `update --old`" in err
    assert store.latest().version == store.version + 1
    assert store.latest().load() == store.load()
    # versions that hold it alone have expired
    assert run("expire", store.url, "--keep", 1, "--older-than", "0s")[0] == 0
    code, _, err = run("update", store.url, *places, "--replace")
    assert code == 2
    assert "no segment holds its counts alone" in err
    copy = tmp_path / "copy.txt"
    copy.write_text("\n".join(planted[:40]))
    assert run("update", store.url, *places, "--replace", "--old", copy)[0] == 0
    assert store.latest().load() == counted_at(store, places)


def test_content_that_was_once_taken_away_is_known_from_another_version(run, apart, planted):
    store, places = apart
    places[0].write_text("\n".join(planted[:40]))
    assert run("forget", store.url, places[0], "--allow-again")[0] == 0
    assert run("update", store.url, *places)[0] == 0
    places[0].write_text("\n".join(planted[100:130]))
    code, _, err = run("update", store.url, *places, "--replace")
    assert code == 0, err
    assert store.latest().load() == counted_at(store, places)
    assert store.latest().verify() == []


def test_shards_another_writer_counts_first_are_left_to_it(store, shards, embedded, monkeypatch):
    listed = list_shards([str(shards)])
    store = rollback(store, 0)
    gather = module.gather_group

    def overtaken(gathering, *arguments):
        gathered = gather(gathering, *arguments)
        monkeypatch.undo()
        update(store, listed[:2], Run(embedded))
        return gathered

    monkeypatch.setattr(module, "gather_group", overtaken)
    result = update(store, listed, Run(embedded))
    assert (result.counted, result.already) == (4, 2)
    assert result.store.load() == store.at(2).load()
    assert result.store.verify() == []

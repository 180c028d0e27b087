"""Traces: every place in a store's folder that may hold data of some shards is named."""

import json
import uuid

import pytest
from synced_folder import Synced

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.purges import traces
from streaming_moments.storage.operations.purges.purge_records import begin_purge
from streaming_moments.storage.operations.purges.purging import Replacement, commit_purge
from streaming_moments.storage.operations.purges.traces import beyond, erase_unnamed, traces_of
from streaming_moments.storage.store.garbage import GarbageCommitted, sweep
from streaming_moments.testing.small_store import (
    append,
    content,
    create,
    model_of,
    purge,
    segment,
)

NAME = "/corpus/b & 'c' <\"é\">.txt"
SEGMENT = "belongs to no version, and its documents are unknown"


@pytest.fixture
def store():
    """Versions 0 to 2: a and the shard are counted."""
    return append(append(create(f"memory://{uuid.uuid4().hex}"), {"a": 1}), {NAME: 2})


@pytest.fixture
def purged(store):
    """Version 3, without data of the shard; version 2 has expired."""
    left = purge(store, {NAME})
    assert traces_of(left.folder, {NAME}) == ()
    return left


def found(store, names=(NAME,), marks=frozenset()):
    return {one.path: one.what for one in traces_of(store.folder, frozenset(names), marks)}


def test_versions_models_and_copies_are_traces(store):
    mark = f"sha256:{'a' * 64}"
    for url, seed in (("copied", 5), ("copy", 5)):
        counts = content(seed).length_histogram
        numbers = (10, mark, counts.n_documents, counts.n_tokens, 2)
        store = store.append_statistics(content(seed), [ShardRecord(url, *numbers)])
    store = store.save_model("m", model_of(0))
    several = traces_of(store.folder, {"copied"})
    assert [one.path.split("/")[0] for one in several] == ["commits"] * 3 + ["models", "copy"]
    assert str(several[-1]) == "copy is counted, and has the content of copied"
    assert [one.beside for one in several] == [False] * 5
    # by its content alone
    assert found(store, ["x"], {(mark, 10)}) == {
        "copied": "is counted, and has the content of a shard given",
        "copy": "is counted, and has the content of a shard given",
    }


def test_versions_that_are_expired_and_not_emptied_are_traces(store):
    [source] = [part for part in store.commit.segments if part.id in _holders(store)]
    store, _ = commit_purge(store, {NAME}, [Replacement((source,), ())])
    assert found(store) == {
        "commits/00000000000000000002.json": (
            "is the file of an expired version, and is not emptied yet"
        ),
        f"segments/{source.id}": "counts some of the shards, although it belongs to no version",
    }
    sweep(store.folder)
    assert found(store) == {}


def _holders(store):
    ledger = store.ledger()
    return {one for one in ledger.tables if ledger.holds_any(one, [NAME])}


def test_what_no_version_names_is_a_trace_if_it_may_hold_any(purged):
    folder = purged.folder
    own, other, alike = (
        segment(purged, shards).reference.id for shards in ({NAME: 2, "x": 7}, {"a": 1}, {"c": 3})
    )
    expected = {f"segments/{own}": "counts some of the shards, although it belongs to no version"}
    assert found(purged) == expected
    held = "counts some of the shards, although it belongs to no version"
    marks = {("sha256:3", 10), ("sha256:1", 11)}
    assert found(purged, marks=marks) == {**expected, f"segments/{alike}": held}
    assert f"segments/{other}" not in found(purged, marks=marks)
    # a segment is named once, whatever it holds of them
    assert len(traces_of(folder, {NAME, "x"})) == 1
    for name in ("segments/ab/x.npy", "models/m/ab/x.npy", "polishing/ab/1/x.npy"):
        folder.write(name, b"1")
    folder.write("vocabulary/x.partial", b"1")
    assert found(purged) == {
        **expected,
        "models/m/ab": SEGMENT,
        "polishing/ab": SEGMENT,
        "segments/ab": SEGMENT,
        "vocabulary/x.partial": "is a partial file with unknown content",
    }
    synced = Synced(folder.url)
    assert erase_unnamed(synced, {NAME}) == ()
    assert synced.synced[-1] == ""
    assert found(purged) == {}
    assert not folder.exists(f"segments/{other}/manifest.json")


def test_a_purge_that_was_cut_off_is_a_trace(purged):
    path = begin_purge(purged.folder, {NAME, "x"})
    unfinished = "names shards of a purge that is not finished; run the purge again"
    assert found(purged) == {path: unfinished}
    assert found(purged, ["y"]) == {}


SPELT = {
    "raw.txt": NAME,
    "report.txt": json.dumps(NAME),
    "text.xml": "/corpus/b &amp; 'c' &lt;\"é\"&gt;.txt",
    "page.txt": "/corpus/b &amp; &#39;c&#39; &lt;&#34;é&#34;&gt;.txt",
    "script.js": r"/corpus/b \u0026 \u0027c\u0027 \u003c\"\u00e9\"\u003e.txt",
}


@pytest.mark.parametrize("file", SPELT)
def test_a_file_beside_the_store_that_names_a_shard_is_a_trace(purged, file):
    purged.folder.write(f"reports/{file}", b"\xff see " + SPELT[file].encode() + b"\xff")
    # other names, such as begin later or end before
    escaped = json.dumps(NAME)[1:-1]
    others = f"see /corpus/b.txt {escaped[1:]} {escaped[:-1]}"
    purged.folder.write("reports/other.txt", others.encode())
    [trace] = traces_of(purged.folder, {NAME})
    assert (trace.path, trace.what, trace.beside) == (
        f"reports/{file}",
        "names some of the shards",
        True,
    )
    # a name without a folder may be any word
    assert traces_of(purged.folder, {"see"}) == ()
    assert erase_unnamed(purged.folder, {NAME}) == (f"reports/{file}",)
    assert purged.folder.names("reports") == ["other.txt"]


def test_reports_and_pages_of_versions_that_are_no_longer_kept_are_traces(purged):
    def report(version, **more):
        return json.dumps({"store": "s", "version": version, **more}).encode()

    def page(version):
        return f'<html><body data-version="{version}"></body>'.encode()

    files = {
        "old.json": report(2),
        "old.html": b"<p>its page, which tells no version</p>",
        "kept.json": report(1),
        "kept.html": page(3),
        "alone.html": page(2),
        "both.json": report(2),
        "both.html": page(2),
        "text.txt": report(2),
        "list.json": b"[2]",
        "broken.json": b"{",
        "other.json": b'{"version": 2}',
        "name.json": report("2"),
        "none.json": b'{"store": "s"}',
        "none.html": b"<p>2</p>",
        **{f"many/{number}.txt": b"" for number in range(20)},
    }
    for name, data in files.items():
        purged.folder.write(f"reports/{name}", data)
    told = "describes version 2, which has expired"
    names = ("alone.html", "both.html", "both.json", "old.html", "old.json")
    assert found(purged) == {f"reports/{name}": told for name in names}
    several = traces_of(purged.folder, {NAME})
    assert (len(several), {one.beside for one in several}) == (5, {True})


def test_a_file_that_goes_while_traces_are_looked_for_is_none(purged):
    class Beside(Folder):
        def find_all(self, names, limits=None):
            super().delete(["reports/old.txt"])
            return super().find_all(names, limits)

    for name in ("old.txt", "other.txt"):
        purged.folder.write(f"reports/{name}", NAME.encode())
    several = traces_of(Beside(purged.url), {NAME})
    assert [one.path for one in several] == ["reports/other.txt"]


@pytest.mark.parametrize("commits", [19, 20])
def test_what_is_committed_while_it_is_erased_is_looked_for_again(purged, monkeypatch, commits):
    left, collect = [GarbageCommitted("again")] * commits, traces.collect

    def overtaken(folder, garbage):
        if left:
            raise left.pop()
        collect(folder, garbage)

    monkeypatch.setattr(traces, "collect", overtaken)
    segment(purged, {NAME: 2})
    if commits == 20:
        with pytest.raises(GarbageCommitted):
            erase_unnamed(purged.folder, {NAME})
    else:
        erase_unnamed(purged.folder, {NAME})
        assert found(purged) == {}


def test_where_nobody_can_look_is_said(purged):
    lines = beyond(purged.foundation)
    assert len(lines) == 4
    assert "`rebase` chooses others" in lines[0]

"""Labels and stale models: a commit each, carried to what is fitted next, said wherever shown."""

import json
import shutil
from datetime import timedelta

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.labels import label, succession
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="module")
def listed(shards):
    return list_shards([str(shards)])


@pytest.fixture(scope="module")
def made(tmp_path_factory, listed, embedded):
    """Three of six shards, and a model of them."""
    options = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
    place, run = str(tmp_path_factory.mktemp("labels") / "store"), Run(embedded)
    made = create(place, listed, ShardFormat(), TokenPolicy(), options, run)
    counted = update(made, listed[:3], run).store
    counted.save_model("first", refit(counted, 3, 0.5, run), "a test")
    return place


@pytest.fixture
def store(tmp_path, made):
    shutil.copytree(made, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


def test_labels_are_commits_and_are_shown_with_the_topics(run, store, listed, tmp_path):
    assert run("label", store.url, 1, "ships & seas")[:2] == (
        0,
        f"version {store.version + 1}: topic 1 is called ships & seas\n",
    )
    told = json.loads(run("topics", store.url, "--json")[1])["topics"]
    assert [topic["label"] for topic in told] == [None, "ships & seas", None]
    assert "ships & seas" in run("topics", store.url)[1]
    [commit, *_] = json.loads(run("log", store.url, "--json")[1])["commits"]
    assert (commit["operation"], commit["message"]) == (
        "label",
        "label topic 1 of first: ships & seas",
    )
    # what is fitted next, and what is polished, has it for the same topic
    again = json.loads(run("refit", store.url, "--topics", "3", "--name", "again", "--json")[1])
    words = {topic["label"]: topic["words"][:3] for topic in again["topics"]}
    assert words["ships & seas"] == told[1]["words"][:3]
    polish = ("polish", store.url, "--model", "first", "--passes", "1", "--words", "3", "--json")
    polished = json.loads(run(*polish)[1])
    assert [topic["label"] for topic in polished["topics"]] == [None, "ships & seas", None]
    # documents, and the table of those that speak most for it
    written = ("--output", tmp_path / "out", "--model", "first", "--top-documents", "1")
    code, out, _ = run("transform", store.url, listed[0].url, *written)
    assert (code, "ships & seas" in out) == (0, True)
    # back to before it, and away
    assert rollback(MomentStore.open(store.url), store.version).models["first"].labels == {}
    assert label(store, 1, "ships").models["first"].labels == {1: "ships"}
    assert run("label", store.url, 1, "--remove")[0] == 0
    assert MomentStore.open(store.url).models["first"].labels == {}


def test_labels_are_short_lines_of_topics_that_are_there(run, store):
    for text in ("", " ", "a" * 101, "two\nlines", "\x1b[2J"):
        if text:
            with pytest.raises(InvalidInput, match="cannot be named"):
                label(store, 0, text)
    with pytest.raises(InvalidInput, match="topics 0 to 2, not 3"):
        label(store, 3, "none")
    with pytest.raises(StoreError, match="no model 'other'"):
        label(store, 0, "none", "other")
    assert run("label", store.url, 0)[0] == 2
    assert run("label", store.url, 0, "text", "--remove")[0] == 2
    assert succession(store, store.load_model()) is None
    assert MomentStore.open(store.url).version == store.version


def test_what_was_counted_and_forgotten_since_is_said_wherever_a_model_is_shown(
    run, store, listed, embedded, tmp_path
):
    on = Run(embedded)

    def since(now):
        found = staleness(now, "first")
        return found.counted, found.forgotten

    assert since(store) == (0, 0)
    assert "was fitted to version" not in run("status", store.url)[1] + run("topics", store.url)[1]
    more = update(store, listed, on).store
    assert since(more) == (450, 0)
    less = forget(more, listed[:1], on)
    assert since(less) == (450, 150)
    line = (
        "450 documents counted since then are not in it, 150 forgotten since then still are in it; "
        "refit"
    )
    for command in ("status", "topics"):
        assert f"warning: model first was fitted to version 1: {line}" in run(command, store.url)[1]
    told = json.loads(run("status", store.url, "--json")[1])["stale_models"]
    assert told == [{"model": "first", "version": 1, "counted": 450, "forgotten": 150}]
    shown = json.loads(run("topics", store.url, "--json")[1])
    since_then = shown["documents_counted_since"], shown["documents_forgotten_since"]
    assert (shown["stale"], *since_then) == (True, 450, 150)
    written = ("transform", store.url, listed[0].url, "--output", tmp_path / "out")
    assert line in run(*written)[2]
    # the same documents in other segments are no other documents
    packed = compact(less, on, "all")
    assert since(packed) == (450, 150)
    assert since(rollback(packed, more.version)) == (450, 0)
    assert since(rollback(packed.latest(), store.version)) == (0, 0)
    # where versions since are no longer kept it cannot be told
    again = store.latest().save_model("second", store.load_model("first"))
    expire(again, 1, timedelta(0))
    assert since(again.latest()) == (None, None)
    assert "so the difference is unknown" in run("topics", store.url, "--model", "first")[1]

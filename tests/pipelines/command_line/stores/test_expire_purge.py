"""Commands that drop old versions, and all of some shards: exact, told, and shown to be so."""

import hashlib
import json
import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from counted_alone import counted_at

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import purge as purging_job
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import LedgerRow, ReportPage
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.column_files import write_columns
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.operations.lineages import stage
from streaming_moments.storage.proportions import Provenance, proportions_file
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import model_of


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, shards):
    """Six shards of their own, that tests may take away."""
    return shutil.copytree(shards, tmp_path_factory.mktemp("purged") / "shards")


@pytest.fixture(scope="module")
def counted(tmp_path_factory, corpus, embedded):
    """Versions 0 to 4: three shards in a segment, a model, three in another, a model of all."""
    folder = tmp_path_factory.mktemp("expiry") / "store"
    listed = list_shards([str(corpus)])
    options = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
    store = create(str(folder), listed, ShardFormat(), TokenPolicy(), options, Run(embedded))
    store = update(store, listed[:3], Run(embedded)).store.save_model("early", model_of(0))
    store = update(store, listed, Run(embedded)).store.save_model("late", model_of(1))
    assert store.version == 4
    return folder


@pytest.fixture
def store(tmp_path, counted):
    shutil.copytree(counted, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


@pytest.fixture
def places(tmp_path, corpus, store):
    """The six shards; what a test takes away is put back."""
    kept = shutil.copytree(corpus, tmp_path / "kept")
    yield sorted(corpus.iterdir())
    shutil.copytree(kept, corpus, dirs_exist_ok=True)


def digests(root, folders=("segments", "models")):
    """Digests of files that hold counts; what is the same in all segments is left out."""
    return {
        hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in (Path(root) / folder).rglob("*")
        if path.is_file() and path.name != "zarr.json"
    }


def texts(root):
    return {str(path): path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}


def test_expire_drops_versions_and_log_says_where_history_begins(run, store):
    url, before = store.url, texts(store.url)
    code, out, _ = run("expire", url, "--keep", 1, "--older-than", "0s", "--dry-run", "--json")
    planned = json.loads(out)
    assert (code, planned["versions"], planned["held"]) == (0, [0, 1, 2], {"3": "model late"})
    assert texts(url) == before
    assert run("expire", url)[1] == "version 4: nothing to drop: no version is old enough\n"
    code, out, err = run("expire", url, "--keep", 1, "--older-than", "0s")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "the history begins with version 3"
    assert "version 3 stays: model late" in out
    log = run("log", url)[1]
    assert "expire: 3 versions, 0 models" in log
    assert log.splitlines()[-1] == "the history begins with version 3; expired versions: 0 to 2"
    assert json.loads(run("log", url, "--json")[1])["expired"] == [[0, 2]]
    for command in (("rollback", url, 1), ("diff", url, 1, 4), ("verify", url, "--version", 1)):
        code, _, err = run(*command)
        assert (code, err.count("\n")) == (2, 1)
        assert "version 1 of" in err
        assert "has expired" in err
    assert run("verify", url) == (0, "version 5 is sound\n", "")
    assert run("topics", url, "--model", "early")[0] == 0
    code, out, _ = run("expire", url, "--keep", 1, "--older-than", "0s", "--models", "--json")
    assert json.loads(out)["models"] == ["early"]
    # versions 3 and 5 still name it
    assert json.loads(out)["versions"] == [4]
    assert "no model 'early'" in run("topics", url, "--model", "early")[2]


def test_neither_works_while_a_night_holds_the_lock(run, store, places):
    lock = Lock.acquire(store.folder, timedelta(hours=1))
    for command in (("expire", store.url), ("purge", store.url, places[0])):
        code, _, err = run(*command)
        assert code == 2
        assert "another run holds the lock" in err
    assert run("expire", store.url, "--dry-run")[0] == 0
    lock.release()
    assert run("expire", store.url)[0] == 0
    # and no later one is kept out
    Lock.acquire(store.folder, timedelta(hours=1)).release()


def test_purge_leaves_what_the_others_make_and_nothing_else(run, store, places, tmp_path):
    url, root = store.url, Path(store.url)
    gone, *others = places[4], *places[:4], places[5]
    store = tag(tag(store, "published", "late"), "old", "early")
    for place in (gone, others[0]):
        folder = OutputFolder(Folder.at(str(root / "proportions")))
        made, rows = made_of(str(place)), iter([{"row": pa.array([0])}])
        write_columns(folder, proportions_file(str(place)), rows, made.metadata)
    reports = root / "reports"
    reports.mkdir()
    (reports / "latest.json").write_text(json.dumps({"store": url, "version": 4}))
    (reports / "latest.html").write_text("<html>topics</html>")
    (reports / "mine.json").write_text(json.dumps({"store": url, "version": 2}))
    # pages without a report beside them: of a version, and of a shard that script and text spell
    for version in (2, 4):
        (root / f"page-{version}.html").write_text(f'<body data-version="{version}">')
    html = html_report(ReportPage("T", url, "", "kept", ledger=(LedgerRow(str(gone), 1, 1),)))
    (root / "ledger.html").write_text(html)
    (root / "notes.txt").write_text("about nothing")
    with_it = digests(url, [f"segments/{one}" for one in holding(store, gone)])
    code, out, _ = run("verify", url, gone, "--purged", "--json")
    found = json.loads(out)
    assert (code, found["purged"]) == (2, False)
    assert any(f"{version:020d}.json" in line for version in (3, 4) for line in found["problems"])
    code, out, _ = run("purge", url, gone, "--dry-run", "--json")
    planned = json.loads(out)
    assert (code, planned["versions"], planned["models"]) == (0, [3, 4, 5, 6], ["late"])
    assert (planned["tags"], planned["dry_run"]) == (["published"], True)
    code, out, err = run("purge", url, gone, "--message", "request 7")
    assert code == 0, err
    assert "models dropped: late; fit new ones with `refit`" in out
    assert "tags dropped: published" in out
    assert "deleted reports/latest.html" in out
    assert "vocabulary and basis: they were chosen from a sample" in out
    after = MomentStore.open(url)
    assert after.load() == counted_at(after, others)
    assert sorted(shard.url for shard in after.ledger()) == sorted(map(str, others))
    assert [*after.models] == ["early"]
    assert after.commit.tags == {"old": "early"}
    assert [commit.operation for commit in after.log()][-4:] == [
        "purge",
        "model",
        "append",
        "create",
    ]
    assert after.verify() == []
    assert after.at(2).verify() == []
    # no file that was made with it, and none that names it
    assert with_it
    assert with_it.isdisjoint(digests(url))
    assert not [path for path, content in texts(url).items() if str(gone).encode() in content]
    assert not (root / "reports/latest.json").exists()
    assert [path.name for path in root.glob("*.html")] == ["page-2.html"]
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert {"notes.txt", "reports/mine.json"} <= left
    assert len([path for path in left if path.startswith("proportions/")]) == 1
    code, out, _ = run("verify", url, gone, "--purged")
    assert code == 0, out
    assert f"{url} holds nothing of 1 shard" in out
    assert "earlier versions of objects" in out
    assert json.loads(run("verify", url, gone, "--purged", "--json")[1])["purged"] is True
    before = texts(url)
    code, out, err = run("purge", url, gone, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["purged_before"], told["shards"], told["erased"]) == ([str(gone)], [], [])
    assert {
        path for path in texts(url).items() ^ before.items() if "/locks/" not in path[0]
    } == set()


def made_of(shard):
    method = ("fixed-point", (), None, False, 0.0, 0, {}, "")
    return Provenance(shard, "", "late", "", "", 4, *method)


def holding(store, place):
    tables = store.ledger().tables.items()
    return {one for one, table in tables if str(place) in table["url"].to_pylist()}


def test_what_was_forgotten_before_is_purged_as_well(run, store, places, embedded):
    gone, others = places[4], [*places[:4], places[5]]
    store = forget(store, list_shards([str(gone)]), Run(embedded)).save_model("after", model_of(2))
    assert len(store.commit.segments) == 3
    code, out, err = run("purge", store.url, gone, "--json")
    assert code == 0, err
    # the last was made without it, of a version that is not kept: nobody could tell any more
    assert json.loads(out)["models"] == ["after", "late"]
    after = MomentStore.open(store.url)
    assert [*after.models] == ["early"]
    assert after.load() == counted_at(after, others)
    assert [part.sign for part in after.commit.segments] == [1, 1]
    assert run("verify", store.url, gone, "--purged")[0] == 0


def test_a_purged_shard_may_be_gone(run, store, places):
    gone, others = places[4], [*places[:4], places[5]]
    gone.unlink()
    code, out, err = run("purge", store.url, gone)
    assert code == 0, err
    assert "2 other shards counted again" in out
    after = MomentStore.open(store.url)
    assert after.load() == counted_at(after, others)
    code, _, err = run("verify", store.url, gone, "--purged")
    assert code == 0
    assert "searched by name only" in err


def test_nothing_is_purged_where_neither_it_nor_the_others_can_be_read(run, store, places):
    places[4].unlink()
    places[5].unlink()
    code, _, err = run("purge", store.url, places[4])
    assert (code, err.count("\n")) == (2, 1)
    assert f"the purge must subtract {places[4]} from a group of shards" in err
    assert f"{places[5]} is gone" in err
    assert MomentStore.open(store.url).version == 4
    # a segment of which nothing stays needs no reading
    for place in places:
        place.unlink(missing_ok=True)
    code, _, err = run("purge", store.url, *places[3:])
    assert code == 0, err
    after = MomentStore.open(store.url)
    assert after.load() == after.at(1).load()


def test_shards_are_named_by_patterns_and_folders_though_nothing_lies_there(run, store, places):
    folder = places[0].parent
    for place in places:
        place.unlink()
    _, out, err = run("purge", store.url, f"{folder}/[0-2].*", "--dry-run", "--json")
    assert json.loads(out)["shards"] == [str(place) for place in places[:3]], err
    assert len(json.loads(run("purge", store.url, folder, "--dry-run", "--json")[1])["shards"]) == 6
    assert run("purge", store.url, folder)[0] == 0
    after = MomentStore.open(store.url)
    assert (len(after.ledger()), after.commit.segments) == (0, ())
    assert after.at(0).verify() == []
    assert run("verify", store.url, folder, "--purged")[0] == 0


def test_a_copy_and_an_unknown_name_are_refused(run, store, places, tmp_path):
    copy = tmp_path / "copy.jsonl"
    shutil.copy(places[4], copy)
    assert run("update", store.url, copy)[0] == 0
    before = texts(store.url)
    for shards, said in (
        ([places[4]], f"{copy} has the content of {places[4]}"),
        (
            [places[4], copy, tmp_path / "typo.jsonl"],
            "typo.jsonl, and it has purged no such shard; check the URLs",
        ),
        ([places[4], copy, "--message", f"{copy} by law"], "the message names a shard"),
    ):
        code, _, err = run("purge", store.url, *shards)
        assert (code, err.count("\n")) == (2, 1)
        assert said in err
    unlocked = {path for path in texts(store.url) if "/locks/" not in path}
    assert {path for path in before if path in unlocked} == set(before)
    assert MomentStore.open(store.url).version == 5
    assert run("purge", store.url, places[4], copy)[0] == 0
    assert run("verify", store.url, places[4], copy, "--purged")[0] == 0


def test_a_lineage_gathered_aside_and_words_that_came_later(run, store, places, embedded):
    store = grow(store, list_shards([str(places[0])]), Run(embedded), words=20).store
    assert store.commit.lineage.eras
    store = stage(store, store.vocabulary, store.policy, store.basis, {})
    code, out, err = run("purge", store.url, places[4], "--json")
    assert code == 0, err
    after = MomentStore.open(store.url)
    # nothing was counted there yet
    assert json.loads(out)["staged"] is False
    assert after.commit.staged is not None
    assert len(after.ledger()) == 5
    assert after.verify() == []
    assert run("verify", store.url, places[4], "--purged")[0] == 0


@pytest.mark.parametrize("step", ["sweep", "erase_unnamed", "purge_inboxes", "end_purges"])
def test_a_purge_that_died_after_its_commit_is_told_and_finished(
    run, store, places, monkeypatch, step
):
    def die(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(purging_job, step, die)
        assert run("purge", store.url, places[4])[0] == 130
    after = MomentStore.open(store.url)
    assert "purge" in [commit.operation for commit in after.log()[:2]]
    code, out, _ = run("verify", store.url, places[4], "--purged")
    assert code == 2
    assert "names them for a purge that is not finished" in out
    # nor is it finished by a call for others
    code, _, err = run("purge", store.url, places[4], f"{places[4]}.typo")
    assert code == 2
    assert "typo, and it has purged no such shard" in err
    code, out, err = run("purge", store.url, f"{places[0].parent}/4.*")
    assert (code, err) == (0, "")
    assert "1 shard already purged; remaining files of it are deleted" in out
    code, out, _ = run("verify", store.url, places[4], "--purged")
    assert code == 0, out
    assert MomentStore.open(store.url).load() == after.load()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rebase_is_named_for_words_and_grids_alone_that_it_makes_anew(run, kind, tmp_path):
    rng, shard, store = np.random.default_rng(0), tmp_path / "a.csv", tmp_path / "store"
    letters = np.array(list("abcdefgh"))[rng.integers(8, size=(60, 3))]
    rows = rng.normal(size=(60, 3)).astype(str) if kind == "vectors" else letters
    if kind in ("counts", "sequences"):
        shard, names = tmp_path / "a.txt", ()
        shard.write_text("\n".join(f"{word} {word}" for word in map("".join, letters)))
    else:
        shard.write_text("\n".join(["a,b,c", *map(",".join, rows)]))
        names = ("--columns", "a,b" if kind == "edges" else "a,b,c")
    if kind == "sets":
        shard.write_text(
            "\n".join(["a,b,c", *(f"{a:d},{b:d},{c:d}" for a, b, c in rng.random((60, 3)) < 0.5)])
        )
    least = () if kind in ("edges", "vectors") else ("--min-documents", "1")
    given = ("--kind", kind, *names, *least, "--date-pattern", "none")
    assert run("create", store, shard, *given)[0] == 0
    assert run("update", store, shard)[0] == 0
    purged = json.loads(run("purge", store, shard, "--dry-run", "--json")[1])
    verified = run("verify", store, shard, "--purged")[1]
    code = run("rebase", store)[0]
    advice = purged["cannot_reach"][0]
    assert " ".join(advice.split()) in " ".join(verified.split())
    assert ("`rebase`" in advice) == (code == 0)
    assert ("`streaming-moments create`" in advice) == (code == 2)

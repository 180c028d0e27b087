"""What was forgotten stays so: updates leave it out until they are told not to."""

import json
import shutil
from pathlib import Path

import pytest

from streaming_moments import open_store
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.aggregation import group_runner
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.operations.purges.traces import traces_of
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


@pytest.fixture
def corpus(tmp_path, planted):
    """Four files of lines."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(4):
        texts = planted[number * 100 : number * 100 + 100]
        (folder / f"{number}.txt").write_text("\n".join(texts) + "\n")
    return folder


@pytest.fixture
def store(tmp_path, corpus, embedded):
    """Version 1 counts three of the four, version 2 all."""
    listed = list_shards([f"{corpus}/*.txt"])
    made = create(
        str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
    )
    return update(update(made, listed[:3], Run(embedded)).store, listed, Run(embedded)).store


def names(store):
    return sorted(Path(record.url).name for record in store.latest().ledger())


def listed_names(store):
    return [Path(name).name for name in store.latest().commit.forgotten.names]


def test_a_forgotten_shard_stays_away_by_name_and_by_content(run, store, corpus, tmp_path):
    url, gone = store.url, corpus / "1.txt"
    assert run("forget", url, gone)[0] == 0
    without = MomentStore.open(url).load()
    shutil.copy(gone, corpus / "copy.txt")
    code, out, err = run("update", url, f"{corpus}/*.txt")
    assert code == 0
    assert "no new shards" in out
    assert err.startswith(f"2 forgotten shards were skipped: {gone} was forgotten; ")
    assert f"copy.txt has the content of {gone}, which was forgotten" in err
    assert "`update --include-forgotten` counts them" in err
    # another content under its name is still of its name
    gone.write_text((corpus / "2.txt").read_text() + "more\n")
    code, out, _ = run("update", url, f"{corpus}/*.txt", "--json")
    assert (code, json.loads(out)["counted"]) == (0, 0)
    assert next(one["reason"] for one in json.loads(out)["forgotten"]) == "was forgotten"
    assert MomentStore.open(url).load() == without
    code, out, _ = run("status", url)
    assert f"by updates: 1 forgotten shard ({gone})" in " ".join(out.split())
    assert json.loads(run("status", url, "--json")[1])["forgotten"] == [str(gone)]
    code, out, err = run(
        "update", url, corpus / "1.txt", corpus / "copy.txt", "--include-forgotten"
    )
    assert (code, err) == (0, "")
    assert (names(store).count("copy.txt"), listed_names(store)) == (1, [])


def test_what_was_forgotten_may_be_allowed_again_though_its_file_is_gone(run, store, corpus):
    url, one, two = store.url, corpus / "1.txt", corpus / "2.txt"
    before = store.load()
    assert run("forget", url, one)[0] == 0
    kept = one.read_bytes()
    one.unlink()
    code, _, err = run("forget", url, corpus / "1.txt")
    assert code == 2
    # one that was forgotten before, and one that is counted
    code, out, err = run("forget", url, one, two, "--allow-again")
    assert (code, err) == (0, "")
    assert "2 shards forgotten; updates may count them again" in out
    assert listed_names(store) == []
    one.write_bytes(kept)
    assert run("update", url, f"{corpus}/*.txt")[0] == 0
    assert MomentStore.open(url).load() == before
    # by a pattern of which nothing is there
    assert run("forget", url, corpus / "[12].txt")[0] == 0
    two.unlink()
    one.unlink()
    assert run("forget", url, corpus / "[12].txt", "--allow-again")[0] == 0
    assert listed_names(store) == []


def test_forgotten_before_is_said_and_changes_nothing(run, store, corpus):
    assert run("forget", store.url, corpus / "1.txt")[0] == 0
    version = store.latest().version
    code, _, err = run("forget", store.url, corpus / "1.txt")
    assert code == 2
    assert "is already forgotten" in err
    assert "--allow-again" in err
    assert store.latest().version == version


def test_every_commit_after_it_keeps_the_list(run, store, corpus, tmp_path):
    url, gone = store.url, corpus / "1.txt"
    assert run("forget", url, gone)[0] == 0
    for command in (
        ("compact", url),
        ("rebase", url),
        ("grow", url, corpus / "2.txt", "--words", 5),
        ("refit", url, "--topics", 2, "--name", "m"),
        ("tag", url, "live", "m"),
        ("expire", url, "--keep", 1, "--older-than", "0s", "--models"),
        ("gc", url, "--grace", "0s"),
    ):
        code, _, err = run(*command)
        assert code == 0, (command, err)
        assert listed_names(store) == ["1.txt"], command
    changed, old = corpus / "3.txt", tmp_path / "old.txt"
    shutil.copy(changed, old)
    changed.write_text((corpus / "0.txt").read_text() + changed.read_text())
    assert run("update", url, f"{corpus}/*.txt", "--replace", "--old", old)[0] == 0
    assert listed_names(store) == ["1.txt"]
    assert names(store) == ["0.txt", "2.txt", "3.txt"]


def test_a_rollback_says_what_it_counts_again_and_forgets_the_rest(run, store, corpus):
    url = store.url
    assert run("forget", url, corpus / "1.txt", corpus / "3.txt")[0] == 0
    # version 1 counts the first of both
    code, out, err = run("rollback", url, 1)
    assert code == 0
    assert f"counted again: 1 forgotten shard: {corpus / '1.txt'}" in err
    assert "counted again: 1 forgotten shard" in run("log", url)[1]
    assert (names(store), listed_names(store)) == (["0.txt", "1.txt", "2.txt"], ["3.txt"])
    code, out, _ = run("update", url, f"{corpus}/*.txt", "--json")
    assert json.loads(out)["counted"] == 0
    # back to where both were forgotten, after one was allowed
    assert run("forget", url, corpus / "3.txt", "--allow-again")[0] == 0
    assert run("rollback", url, 3)[0] == 0
    assert listed_names(store) == ["1.txt", "3.txt"]
    assert names(store) == ["0.txt", "2.txt"]


def test_a_purge_takes_it_off_the_list_and_keeps_a_hash_by_which_it_stays_away(
    run, store, corpus, tmp_path
):
    url, gone = store.url, corpus / "1.txt"
    assert run("forget", url, gone)[0] == 0
    mark = next(iter(store.latest().commit.forgotten.shards)).fingerprint
    code, _, err = run("purge", url, gone)
    assert code == 0, err
    shutil.copy(gone, corpus / "copy.txt")
    everything = b"".join(path.read_bytes() for path in Path(url).rglob("*") if path.is_file())
    assert str(gone).encode() not in everything
    assert mark.partition(":")[2].encode() not in everything
    assert traces_of(store.folder, {str(gone)}) == ()
    code, _out, err = run("update", url, f"{corpus}/*.txt")
    assert (code, names(store)) == (0, ["0.txt", "2.txt", "3.txt"])
    assert f"{gone} was purged" in err
    assert "copy.txt has the content of a shard that was purged" in err
    assert "1 purged" in run("status", url)[1]
    assert run("forget", url, gone, "--allow-again")[0] == 0
    assert run("update", url, gone)[0] == 0
    assert names(store) == ["0.txt", "1.txt", "2.txt", "3.txt"]
    # and is purged as any, now that it is counted again
    assert run("purge", url, gone)[0] == 0
    assert names(store) == ["0.txt", "2.txt", "3.txt"]


def test_a_writer_that_counts_what_is_forgotten_meanwhile_leaves_it_out(
    store, corpus, embedded, monkeypatch
):
    store = forget(store, list_shards([str(corpus / "1.txt")]), Run(embedded), allow_again=True)
    before, told, gather = store.load(), [], group_runner.gather_group

    def slept(gathering, *given):
        found = gather(gathering, *given)
        if not told:
            told.append("slept")
            other = update(store, list_shards([str(corpus / "1.txt")]), Run(embedded)).store
            forget(other, list_shards([str(corpus / "1.txt")]), Run(embedded))
        return found

    (corpus / "new.txt").write_text((corpus / "0.txt").read_text() * 2)
    with monkeypatch.context() as patch:
        patch.setattr(group_runner, "gather_group", slept)
        result = update(store, list_shards([f"{corpus}/*.txt"]), Run(embedded, tell=told.append))
    assert [url for url, _ in result.forgotten] == [str(corpus / "1.txt")]
    assert names(store) == ["0.txt", "2.txt", "3.txt", "new.txt"]
    assert "1 forgotten shard was skipped" in str(told[-1])
    fewer = forget(result.store, list_shards([str(corpus / "new.txt")]), Run(embedded))
    assert fewer.load() == before


def test_new_content_that_was_forgotten_does_not_come_by_a_replacement(run, store, corpus):
    assert run("forget", store.url, corpus / "1.txt")[0] == 0
    shutil.copy(corpus / "1.txt", corpus / "3.txt")
    code, _, err = run("update", store.url, corpus / "3.txt", "--replace")
    assert code == 2
    assert "3.txt has the content of" in err
    assert names(store) == ["0.txt", "2.txt", "3.txt"]
    again = run("update", store.url, corpus / "3.txt", "--replace", "--include-forgotten")
    assert again[0] == 0


def test_a_file_that_grew_and_a_folder_of_texts_are_forgotten_whole(run, store, corpus, planted):
    url, log = store.url, corpus / "1.txt"
    log.write_text(log.read_text() + "\n".join(planted[500:540]) + "\n")
    assert run("update", url, log)[0] == 0
    assert len([name for name in names(store) if name.startswith("1.txt")]) == 2
    assert run("forget", url, log)[0] == 0
    assert listed_names(store) == ["1.txt"]
    log.write_text(log.read_text() + "\n".join(planted[540:560]) + "\n")
    _, out, _ = run("update", url, f"{corpus}/*.txt", "--json")
    assert json.loads(out)["counted"] == 0
    assert run("forget", url, log, "--allow-again")[0] == 0
    _code, out, _ = run("update", url, f"{corpus}/*.txt", "--json")
    assert json.loads(out)["counted"] == 1


def test_python_skips_it_with_a_warning_and_counts_it_when_it_is_told_to(store, corpus, planted):
    opened = open_store(store.url)
    before = opened.documents
    counted = opened.update(planted[400:420], source="texts")
    less = counted.forget(planted[400:420], source="texts")
    assert less.documents == before
    with pytest.warns(UserWarning, match="1 forgotten shard was skipped: partition://texts/0"):
        assert less.update(planted[400:420], source="texts").documents == before
    with pytest.warns(UserWarning, match="which was forgotten") as told:
        assert less.update(planted[400:420], source="others").documents == before
    assert told[0].filename == __file__
    more = less.update(planted[400:420], source="texts", include_forgotten=True)
    assert more.documents == before + 20
    again = more.forget(planted[400:420], source="texts", allow_again=True)
    assert again.update(planted[400:420], source="texts").documents == before + 20
    with pytest.raises(InvalidInput, match="is already forgotten"):
        less.forget(planted[400:420], source="texts").forget(planted[400:420], source="texts")


def test_stores_without_a_list_are_written_as_before(store, corpus, embedded, tmp_path):
    """And only a list keeps out writers that know of none, where halves do not."""
    made = store.vocabulary, store.policy, store.basis, store.form
    plain = MomentStore.create(str(tmp_path / "plain"), *made, halves=False)
    listed = list_shards([str(corpus / "*.txt")])
    store = update(plain, listed, Run(embedded)).store
    content = unseal(store.folder.read(commit_file(store.version)), "commit")
    assert "forgotten" not in content
    kept = unseal(store.folder.read("format.json"), "format")
    assert kept["min_writer"] == 2
    after = forget(store, list_shards([str(corpus / "1.txt")]), Run(embedded))
    kept = unseal(after.folder.read("format.json"), "format")
    assert (kept["min_reader"], kept["min_writer"]) == (2, 5)

"""A night over a folder in which a forgotten shard still lies."""

import json
import shutil

import pytest

from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")


def configured(folder, store, shards):
    """The file of a night of a small store, whose reports are in the folder."""
    config = folder / "night.toml"
    config.write_text(
        f'store = "{store}"\nshards = "{shards}"\noutput = "{folder}/reports"\n'
        "[create]\nmin_documents = 2\nvocabulary_size = 120\nmax_topics = 4\n"
        "[refit]\ntopics = 2\n[gates]\nmin_documents = 1\n"
    )
    return config


def test_a_forgotten_shard_does_not_come_back_by_night(run, tmp_path, planted):
    corpus, store = tmp_path / "corpus", str(tmp_path / "store")
    corpus.mkdir()
    for number in range(3):
        texts = planted[number * 150 : number * 150 + 150]
        (corpus / f"{number}.txt").write_text("\n".join(texts) + "\n")
    config = configured(tmp_path, store, f"{corpus}/*.txt")
    assert run("nightly", config)[0] == 0
    assert run("forget", store, corpus / "1.txt")[0] == 0
    without = MomentStore.open(store).load()
    shutil.copy(corpus / "1.txt", corpus / "a copy.txt")
    # the model is fitted once more, without it
    code, out, err = run("nightly", config)
    assert (code, "0 shards counted" in out) == (0, True), err
    assert "forgotten 2" in err
    code, out, err = run("nightly", config)
    assert (code, out) == (10, "nothing new; 0 shards counted\n"), err
    assert MomentStore.open(store).load() == without
    report = json.loads((tmp_path / "reports" / "latest.json").read_text())
    update = next(step for step in report["steps"] if step["step"] == "update")
    assert [reason for _, reason in update["values"]["forgotten"]] == [
        "was forgotten",
        f"has the content of {corpus / '1.txt'}, which was forgotten",
    ]
    assert "2 forgotten shards were skipped" in update["values"]["told"][0]
    assert report["status"]["forgotten"] == [str(corpus / "1.txt")]


def test_a_night_after_a_move_counts_nothing_and_after_a_renaming_has_nothing_new(
    run, tmp_path, planted
):
    corpus, store = tmp_path / "corpus", str(tmp_path / "store")
    (corpus / "before").mkdir(parents=True)
    (corpus / "before" / "a.txt").write_text("\n".join(planted[:300]) + "\n")
    config = configured(tmp_path, store, f"{corpus}/**/*.txt")
    assert run("nightly", config)[0] == 0
    (corpus / "before").rename(corpus / "after")
    code, out, err = run("nightly", config)
    assert (code, "0 shards counted" in out) == (3, True), err
    assert f"run `streaming-moments rename` with {store} {corpus}/before/ {corpus}/after/" in err
    code, out, _ = run("rename", store, corpus / "before", corpus / "after")
    assert (code, "1 shard of" in out) == (0, True)
    code, out, err = run("nightly", config)
    assert (code, out) == (10, "nothing new; 0 shards counted\n"), err

"""Stores of before there were halves, and versions that know none."""

import json
import shutil

import pytest
from frozen import unpack_into
from written_stores import V1, V2, content_of, counted, format_of

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.statistics.counts.pair_rows import half_pairs
from streaming_moments.storage.log import format as format_module
from streaming_moments.storage.log.format import FormatError
from streaming_moments.storage.log.layout import reached_file
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.lineages import (
    adopt,
    stage,
    stage_segment,
    staged_store,
)
from streaming_moments.storage.store.store import MomentStore


def test_versions_that_know_no_halves_are_kept_out(tmp_path, monkeypatch):
    # halves are of the third format, those by content are written on by versions of the sixth alone
    sixth = {"format": 6, "min_reader": 3, "min_writer": 6, "install": "0.3.0"}
    copy = shutil.copytree(V1, tmp_path / "v1")
    store = MomentStore.open(str(copy))
    assert not store.halves
    state, words = store.load(), (store.vocabulary, store.policy)
    assert state.even_pair_counts is None
    made = MomentStore.create(str(copy.parent / "new"), *words, store.basis, store.form)
    assert format_of(made.url) == sixth
    shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 2, 12, 0)
    made = made.append_statistics(counted(made, [[3, 2, 1], [1, 2, 3]]), [shard])
    assert made.verify() == []
    opened = MomentStore.open(made.url)
    assert opened.halves
    even = counted(store, [[3, 2, 1]]).pair_counts
    assert opened.load().even_pair_counts.tolist() == even.tolist()
    for other, own in ((store, made), (made, store)):
        with pytest.raises(ForeignStatistics, match=f"halves={other.halves}"):
            other.append_statistics(counted(own, [[3, 2, 1]]), [shard])
    # the same words and basis, with halves
    store = stage(store, *words, store.basis, {}, halves=True)
    assert format_of(copy) == sixth
    assert MomentStore.open(str(copy)).load() == state
    aside = staged_store(store)
    assert aside.halves
    shards = [ShardRecord(one.url, 5, one.fingerprint, 1, 6, 0) for one in store.ledger()]
    for record in shards:
        ready = aside.write_segment(counted(aside, [[3, 2, 1]]), [record])
        store = stage_segment(store, ready)
    # gathered before the rebase, on the same basis, and committed after it
    more = ShardRecord("s3://corpus/f.txt", 5, "etag:f", 1, 6, 0)
    before = MomentStore.open(str(copy))
    late = before.write_segment(counted(before, [[3, 2, 1]]), [more])
    assert late.basis == store.commit.staged.lineage.basis
    with pytest.raises(ForeignStatistics, match="counted without separate sums .* after a rebase"):
        stage_segment(store, late)
    adopted = adopt(store)
    with pytest.raises(ForeignStatistics, match="counted without separate sums .* after a rebase"):
        before.append(late)
    assert adopted.halves
    assert adopted.load().even_pair_counts.tolist() == (2 * even).tolist()
    assert MomentStore.open(str(copy)).verify() == []
    # as a version that weighs documents but knows no halves would open them
    monkeypatch.setattr(format_module, "READS", 2)
    monkeypatch.setattr(format_module, "WRITES", 2)
    for place in (copy, made.url):
        with pytest.raises(FormatError, match=r"supports store format 3, .* to 0\.3\.0 or later$"):
            MomentStore.open(str(place))


def test_a_store_of_before_there_were_halves_works_as_it_did(tmp_path, capsys):
    place = tmp_path / "v2"
    shutil.copytree(V2, place)
    before = {
        path: content for path, content in content_of(place).items() if path != reached_file()
    }
    store = MomentStore.open(str(place))
    assert format_of(place)["format"] == 2
    assert (store.version, store.halves, store.verify()) == (3, False, [])
    statistics = store.load()
    assert {name: array.tolist() for name, array in statistics.arrays().items()} == {
        "word_counts": [2, 1, 1],
        "document_frequencies": [2, 1, 1],
        "pair_counts": [[0, 2], [2, 0], [2, 2]],
        "triple_sketch": [[5383, 2377, 3133], [578, 1292, 2888], [578, 1292, 2888]],
        "weighted_counts": [7, 2, 2],
        "codocuments": [[2, 1], [1, 1]],
    }
    with pytest.raises(InvalidInput, match=r"have no halves .* `rebase --halves`"):
        half_pairs(statistics, 1)
    more = counted(store, [[1, 2, 3], [2, 0, 2]])
    shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 2, 10, 0)
    grown = store.append_statistics(more, [shard], "written on")
    assert grown.load() == statistics + more
    assert MomentStore.open(str(place)).verify() == []
    assert before.items() <= content_of(place).items()
    assert "halves" not in (place / f"commits/{4:020d}.json").read_text()
    with pytest.raises(SystemExit):
        main(["status", str(place), "--json"])
    counting = json.loads(capsys.readouterr().out)["counting"]
    assert counting.endswith("other defaults: `rebase --halves`")


def test_a_store_of_halves_in_turn_goes_on_and_says_so_until_a_rebase(
    tmp_path, capsys, embedded_run
):
    """Of the third format: every other document of a shard."""
    unpack_into(tmp_path, "counts_3")
    store = MomentStore.open(str(tmp_path / "store"))
    assert (store.halves, store.commit.lineage.halves_by_content) == (True, False)
    assert not store.counts.by_content
    with pytest.raises(SystemExit):
        main(["status", store.url, "--json"])
    said = json.loads(capsys.readouterr().out)["counting"]
    assert said.endswith(
        "with halves, between which documents alternate; new stores have other defaults: `rebase`"
    )
    before = store.load()
    after = rebase(store, embedded_run).store
    assert after.commit.lineage.halves_by_content
    assert format_of(after.url) == {
        "format": 6,
        "min_reader": 3,
        "min_writer": 6,
        "install": "0.3.0",
    }
    assert after.load().length_histogram.n_documents == before.length_histogram.n_documents
    with pytest.raises(SystemExit):
        main(["status", store.url, "--json"])
    assert json.loads(capsys.readouterr().out)["counting"].endswith("with halves")
    assert MomentStore.open(store.url, store.version).load() == before

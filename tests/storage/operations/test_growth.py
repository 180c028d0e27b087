"""Words added to a store: the state is that of a fresh count, whatever came before and after.

`STREAMING_MOMENTS_HISTORIES` is three times the number of random histories.
"""

import json
import os
import uuid
from dataclasses import replace

import numpy as np
import pytest
from growing import (
    TERMS,
    compact,
    counted,
    era_of,
    forget,
    record,
    recount,
    segment,
    segments_by_era,
)
from widening import widened

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations.compaction import (
    commit_compaction,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import added_words, grow, store_of_era
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.lineages import adopt, stage, stage_segment, staged_store
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import BASIS, VOCABULARY, create

HISTORIES = int(os.environ.get("STREAMING_MOMENTS_HISTORIES", "6")) // 3


def require(store, shards, whole=True):
    """Check that the state is exactly that of the shards, given as (seed, words) by URL."""
    total = recount(store, shards.values())
    records = {record(era_of(store, words), url, seed) for url, (seed, words) in shards.items()}
    assert store.load() == total
    assert store.row_lengths() == total.row_lengths
    assert set(store.ledger()) == records
    if whole:
        assert store.verify() == []


def test_documents_count_the_new_words_from_their_commit_on():
    store = create()
    old = store = store.append(segment(store, {"a": 1}))
    grown = grow(store, ["steam", "rail"], message="two more")
    assert grown.vocabulary.terms == TERMS[:6]
    assert (grown.vocabulary.core, grown.basis.core) == (3, 3)
    assert added_words(old.commit.lineage, 4) == ()
    assert grown.basis.matrix.tolist() == BASIS.matrix.tolist()
    assert (grown.commit.operation, grown.commit.message) == ("grow", "two more")
    [added] = added_words(grown.commit.lineage, 6)
    assert (added.first, added.words, added.version) == (4, 2, grown.version)
    assert added.time == grown.commit.time
    require(grown, {"a": (1, 4)})
    after = grown.append(segment(grown, {"b": 2}))
    require(after, {"a": (1, 4), "b": (2, 6)})
    assert [first for first, _ in after.row_lengths().later] == [4]
    twice = grow(after, ["wire"])
    twice = twice.append(segment(twice, {"c": 3}))
    require(twice, {"a": (1, 4), "b": (2, 6), "c": (3, 7)})
    assert [part.words for part in added_words(twice.commit.lineage, 7)] == [2, 1]
    # versions before are what they were
    require(twice.at(old.version), {"a": (1, 4)})
    require(MomentStore.open(twice.url, after.version), {"a": (1, 4), "b": (2, 6)})


def test_a_store_that_never_grew_says_nothing_of_eras(tmp_path):
    store = create(tmp_path / "store")
    store = store.append(segment(store, {"a": 1}))
    for path in sorted((tmp_path / "store" / "commits").glob("0*.json")):
        assert "eras" not in path.read_text()
        assert "words" not in path.read_text()
    grown = grow(store, ["steam"])
    content = unseal((tmp_path / "store" / "commits" / f"{2:020d}.json").read_bytes(), "")
    assert [era["words"] for era in content["lineage"]["eras"]] == [4]
    assert [part["words"] for part in content["segments"]] == [4]
    assert MomentStore.open(store.url).commit == grown.commit


def test_shards_of_either_era_are_forgotten_replaced_and_summed_up():
    store = create()
    store = store.append(segment(store, {"a": 1, "b": 2}))
    store = store.append(segment(store, {"c": 3}))
    store = grow(store, ["steam", "rail"])
    store = store.append(segment(store, {"d": 4}))
    store = store.append(segment(store, {"e": 5}))
    store = forget(store, {"b": (2, 4), "d": (4, 6)})
    left = {"a": (1, 4), "c": (3, 4), "e": (5, 6)}
    require(store, left)
    # what was forgotten is counted with today's words
    again = store.append(segment(store, {"b": 2}))
    require(again, {**left, "b": (2, 6)})
    new = segment(again, {"a": 7})
    changed = commit_recount(
        again, Recount("replace", "", (new,), segments_by_era(again, {"a": (1, 4)}))
    )
    expected = {"a": (7, 6), "b": (2, 6), "c": (3, 4), "e": (5, 6)}
    require(changed, expected)
    small = compact(changed)
    assert sorted(part.words or 6 for part in small.commit.segments) == [4, 6]
    require(small, expected)
    require(forget(small, {"c": (3, 4), "b": (2, 6)}), {"a": (7, 6), "e": (5, 6)})
    require(small.at(again.version), {**left, "b": (2, 6)})


def test_what_is_taken_away_with_other_words_is_refused():
    store = create()
    store = store.append(segment(store, {"a": 1}))
    store = grow(store, ["steam"])
    store = store.append(segment(store, {"b": 1}))
    # the lengths and the ledger might even allow it
    wrong = replace(record(store_of_era(store, 4), "a", 1))
    taken = store.write_segment(counted(store, 1), [record(store, "b", 1)])
    forged = replace(taken, shards=(wrong,))
    with pytest.raises(InvalidInput, match="a cannot be subtracted .* with another vocabulary"):
        commit_recount(store, Recount("forget", "", removed=(forged,)))
    require(store, {"a": (1, 4), "b": (1, 5)})


def test_segments_gathered_while_another_writer_grew_the_store_count_without_the_words():
    store = create()
    store = store.append(segment(store, {"a": 1, "b": 2}))
    store = store.append(segment(store, {"e": 5}))
    appended, removed = segment(store, {"c": 3}), segment(store, {"b": 2})
    sources, writer = store.commit.segments[:2], store.new_segment()
    files = [f for i in range(store.row_blocks) for f in write_sum(writer, sources, i)]
    ready = seal_sum(store, writer, files, sources)
    other = grow(store.latest(), ["steam", "rail"])
    late = other.append(segment(other, {"d": 4}))
    require(
        store.append(appended), {"a": (1, 4), "b": (2, 4), "c": (3, 4), "d": (4, 6), "e": (5, 4)}
    )
    assert late.latest().commit.segments[-1].words == 4
    summed = commit_compaction(store, sources, ready)
    assert [part.words for part in summed.commit.segments] == [4, None, 4]
    gone = commit_recount(store, Recount("forget", "", removed=(removed,)))
    require(gone, {"a": (1, 4), "c": (3, 4), "d": (4, 6), "e": (5, 4)})
    with pytest.raises(ShardsAlreadyCounted):
        store.append(segment(store, {"d": 4}))


def test_two_writers_do_not_grow_one_vocabulary_apart():
    store = create()
    grow(store, ["steam"])
    with pytest.raises(StoreError, match="the vocabulary of .* that of version 0.* run this again"):
        grow(store, ["rail"])
    back = rollback(store.latest(), 0)
    assert back.vocabulary.terms == VOCABULARY.terms
    with pytest.raises(ForeignStatistics):
        back.append(segment(store.at(1), {"a": 1}))
    again = grow(back, ["rail"])
    assert again.vocabulary.terms == (*VOCABULARY.terms, "rail")
    assert added_words(again.commit.lineage, 5)[0].version == again.version


def test_words_that_are_none_or_known_are_refused():
    store = create()
    for terms, ids, said in (
        ([], None, "no words to add"),
        (["sea"], None, "repeats a term"),
        (["steam", "steam"], None, "repeats a term"),
        (["steam"], [7], "store of texts"),
    ):
        with pytest.raises(InvalidInput, match=said):
            grow(store, terms, ids)
    assert store.latest().version == 0


def test_a_lineage_aside_stays_as_it_is_and_begins_without_eras():
    store = create()
    store = store.append(segment(store, {"a": 1}))
    store = grow(store, ["steam"])
    words = Vocabulary(TERMS[:3], 3)
    basis = replace(BASIS, n_words=3, vocabulary=words.fingerprint)
    store = stage(store, words, None, basis, {})
    assert store.commit.staged.lineage.eras == ()
    store = grow(store, ["rail"])
    aside = staged_store(store)
    store = stage_segment(store, segment(aside, {"a": 1}))
    store = adopt(store)
    require(store, {"a": (1, 3)})
    assert store.commit.lineage.eras == ()


def test_windows_and_half_lives_know_which_documents_count_a_row():
    days = [DateRange.from_json([f"2026-11-{day}"] * 2) for day in ("01", "02", "03")]
    store = create()
    store = store.append(segment(store, {"a": 1}, days[0]))
    store = store.append(segment(store, {"b": 2}, days[1]))
    store = grow(store, ["steam"])
    store = store.append(segment(store, {"c": 3}, days[2]))
    since = WindowedStore.of(store, Window(since=days[1].first))
    blocks = [since.load_block(index) for index in range(store.row_blocks)]
    b, c = counted(store_of_era(store, 4), 2), counted(store, 3)
    assert all(block.row_lengths == since.row_lengths() for block in blocks)
    assert since.row_lengths().at(4) == c.length_histogram
    assert since.row_lengths().at(0) == b.length_histogram + c.length_histogram
    fading = WindowedStore.of(store, Window(since=days[1].first, half_life=1))
    C1, _, _ = fading.row_lengths().constants(np.array([0, 4]))
    assert C1.tolist() == [
        0.5 * b.length_histogram.C1 + c.length_histogram.C1,
        c.length_histogram.C1,
    ]
    constants = fading.load_block(0).row_lengths.constants(np.array([0, 4]))
    assert constants[0].tolist() == C1.tolist()


def test_statistics_of_two_vocabularies_are_no_segment():
    store = create()
    grown = grow(store, ["steam"])
    mixed = widened(counted(store, 1), grown.basis) + counted(grown, 2)
    with pytest.raises(ForeignStatistics, match="fewer than all 5 words"):
        grown.write_segment(mixed, [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda lineage, segments: lineage["eras"][0].update(words=3),
        lambda lineage, segments: lineage["eras"].append(lineage["eras"][0]),
        lambda lineage, segments: lineage["eras"][0].update(basis="../../x"),
        lambda lineage, segments: segments[0].update(words=5),
        lambda lineage, segments: lineage.pop("eras"),
    ],
)
def test_a_commit_with_eras_that_never_were_is_refused(tmp_path, damage):
    store = create(tmp_path / "store")
    store = grow(store.append(segment(store, {"a": 1})), ["steam"])
    path = tmp_path / "store" / "commits" / f"{2:020d}.json"
    content = unseal(path.read_bytes(), "")
    damage(content["lineage"], content["segments"])
    path.write_bytes(seal(json.loads(json.dumps(content))))
    with pytest.raises(StoreError, match="restore it from a copy"):
        MomentStore.open(store.url)


def test_an_earlier_vocabulary_that_is_gone_or_another_is_found(tmp_path):
    store = create(tmp_path / "store")
    store = grow(store.append(segment(store, {"a": 1})), ["steam"])
    path = tmp_path / "store" / "commits" / f"{2:020d}.json"
    content = unseal(path.read_bytes(), "")
    whole = path.read_bytes()
    basis = tmp_path / "store" / "basis" / BASIS.fingerprint / "Q.npy"
    kept = basis.read_bytes()
    basis.unlink()
    assert any("Q.npy" in problem for problem in store.verify())
    basis.write_bytes(kept)
    other = Vocabulary(("law", "tax", "sea", "ship"), 3)
    aside = MomentStore.create(
        str(tmp_path / "other"), other, None, BASIS.with_words(4, other.fingerprint), store.form
    )
    for folder in ("vocabulary", "basis"):
        for file in (tmp_path / "other" / folder).rglob("*.*"):
            target = tmp_path / "store" / file.relative_to(tmp_path / "other")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    content["lineage"]["eras"][0].update(
        vocabulary=other.fingerprint, basis=aside.basis.fingerprint
    )
    path.write_bytes(seal(content))
    opened = MomentStore.open(store.url)
    assert any(
        "is not the beginning of the present one of 5 words" in problem
        for problem in opened.verify()
    )
    path.write_bytes(whole)
    assert MomentStore.open(store.url).verify() == []


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_histories_with_growth_are_those_of_a_fresh_count(seed):
    rng = np.random.default_rng(seed)
    store = create()
    writers, states = [store, store], [{}]
    for _ in range(12):
        writer = int(rng.integers(2))
        head = writers[writer].latest()
        # half of the actions begin from what the writer knew last
        begun = head if rng.random() < 0.5 else writers[writer]
        now, act = states[-1], rng.choice(["add", "add", "grow", "forget", "compact", "back"])
        words = head.basis.n_words
        bases = {era.basis for era in head.commit.lineage.eras}
        usable = begun.basis == head.basis or begun.basis.fingerprint in bases
        if act == "add" and usable:
            new = {url: int(rng.integers(100)) for url in rng.choice(list("abcdefgh"), 2, False)}
            new = {url: content for url, content in new.items() if url not in now}
            if not new:
                continue
            store = begun.append(segment(begun, new))
            own = {url: (content, begun.basis.n_words) for url, content in new.items()}
            states.append({**now, **own})
        elif act == "grow" and words < len(TERMS):
            store = grow(head, TERMS[words : words + int(rng.integers(1, 3))])
            states.append(now)
        elif act == "forget" and now:
            gone = {url: now[url] for url in rng.choice(sorted(now), 1)}
            store = forget(head, gone)
            states.append({url: own for url, own in now.items() if url not in gone})
        elif act == "compact":
            store = compact(head)
            states += [now] * (store.version - head.version)
        elif act == "back":
            version = int(rng.integers(len(states)))
            store = rollback(head, version)
            states.append(states[version])
        else:
            continue
        writers[writer] = store
        require(store, states[-1], whole=False)
        assert store.version == len(states) - 1
    assert store.verify() == []
    for version, state in enumerate(states):
        require(store.at(version), state, whole=False)


def test_words_are_written_before_the_commit_that_names_them(monkeypatch):
    synced, store = [], create()
    monkeypatch.setattr(Folder, "sync", lambda folder, name: synced.append(name))
    grown = grow(store, ["steam"])
    assert synced[0] == ""
    with pytest.raises(InvalidInput, match="words alone to a store of texts"):
        grow(grown, ["rail"], [5])


def test_words_of_token_ids_come_with_theirs():
    vocabulary = Vocabulary(TERMS[:3], 3, "", (7, 5, 9))
    basis = replace(BASIS, n_words=3, vocabulary=vocabulary.fingerprint)
    form = ShardFormat(ids_column="ids")
    store = MomentStore.create(f"memory://{uuid.uuid4().hex}", vocabulary, None, basis, form)
    with pytest.raises(InvalidInput, match="words with their ids"):
        grow(store, ["steam"])
    grown = grow(store, ["steam", "rail"], [2, 8])
    assert grown.vocabulary.token_ids == (7, 5, 9, 2, 8)


def test_each_growth_is_told_with_its_words():
    store = grow(grow(create(), ["steam", "rail"]), ["wire"])
    found = added_words(store.commit.lineage, 7)
    assert [(one.first, one.words, one.version) for one in found] == [(4, 2, 1), (6, 1, 2)]
    assert [one.time for one in found] == [store.at(version).commit.time for version in (1, 2)]


def test_of_an_earlier_vocabulary_nothing_is_put_into_the_log():
    """A commit on top of the store of an era would be version 0, which exists."""
    store = grow(create(), ["steam"])
    assert store_of_era(store, None) is store
    era = store_of_era(store, 4)
    assert (era.basis.n_words, era.commit.segments, era.commit.lineage.eras) == (4, (), ())
    with pytest.raises(CommitConflict):
        CommitLog(store.folder).put(era.commit.successor("append", "with old words"))

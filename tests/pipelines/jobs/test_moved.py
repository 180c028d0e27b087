"""Shards that have moved: no update counts them again, and a renaming gives them their names."""

import shutil
from pathlib import Path

import fsspec
import pytest

from streaming_moments import open_store
from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.listed import moved as listed_moved
from streaming_moments.pipelines.jobs.rename import rename
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.staleness import forgotten_since, staleness
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.testing.small_store import append, model_of, total
from streaming_moments.testing.small_store import create as small
from streaming_moments.testing.small_store import forget as small_forget

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


@pytest.fixture
def corpus(tmp_path, planted):
    """Four files of lines, in two folders."""
    for number in range(4):
        folder = tmp_path / "corpus" / f"{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        texts = planted[number * 100 : number * 100 + 100]
        (folder / f"{number}.txt").write_text("\n".join(texts) + "\n")
    return tmp_path / "corpus"


@pytest.fixture
def store(tmp_path, corpus, embedded):
    """Two segments count the four files."""
    listed = shards_of(corpus)
    policy, run = TokenPolicy(), Run(embedded)
    made = create(str(tmp_path / "store"), listed, ShardFormat(), policy, OPTIONS, run)
    return update(update(made, listed[:3], run).store, listed, run).store


def shards_of(folder):
    return list_shards([f"{folder}/**/*.txt"])


def urls(store):
    return sorted(record.url for record in store.latest().ledger())


def moved(folder, name="elsewhere"):
    return folder.rename(folder.with_name(name))


def test_an_update_counts_no_shard_again_that_has_moved(store, corpus, embedded):
    run, before = Run(embedded), store.load()
    place = moved(corpus)
    with pytest.raises(InvalidInput, match="4 shards have moved since") as refused:
        update(store, shards_of(place), run)
    assert f"rename` with {store.url} {corpus}/ {place}/, or count the shards" in str(refused.value)
    with pytest.raises(InvalidInput, match="1 shard has moved since it was counted"):
        update(store, shards_of(place)[:1], run)
    assert store.latest().version == store.version
    lines = []
    telling = Run(embedded, tell=lines.append)
    left = update(store, shards_of(place), telling, skip_bad_shards=True)
    assert [str(line) for line in lines] == [
        f"4 shards moved from {corpus}/ to {place}/: run `streaming-moments rename` with "
        f"{store.url} {corpus}/ {place}/, or count the shards again by `update --include-moved`"
    ]
    assert ([error.url for error in left.bad], left.counted) == (
        [shard.url for shard in shards_of(place)],
        0,
    )
    assert {url for url, _ in left.store.commit.skipped} == {error.url for error in left.bad}
    assert left.store.load() == before
    twice = update(left.store, shards_of(place), run, include_moved=True)
    assert (twice.counted, twice.documents) == (4, before.n_documents)


def test_new_shards_beside_moved_ones_are_counted(store, corpus, embedded, planted):
    place = moved(corpus)
    (place / "new.txt").write_text("\n".join(planted[400:450]) + "\n")
    found = update(store, shards_of(place), Run(embedded), skip_bad_shards=True)
    assert (found.counted, found.documents, len(found.bad)) == (1, 50, 4)


def test_a_copy_another_name_and_other_content_have_not_moved(store, corpus, embedded, planted):
    run = Run(embedded)
    shutil.copytree(corpus, corpus.with_name("copy"))
    copied = update(store, shards_of(corpus.with_name("copy")), run)
    assert (copied.counted, len(copied.copies)) == (4, 4)
    (corpus / "0" / "0.txt").rename(corpus / "0" / "renamed.txt")
    named = update(copied.store, shards_of(corpus), run)
    assert (named.counted, named.already) == (1, 3)
    other = corpus.with_name("other")
    moved(corpus / "1").rename(other)
    content = (other / "1.txt").read_text()
    (other / "1.txt").write_text(content.replace("wa", "wb"))
    found = update(named.store, shards_of(other), run, skip_bad_shards=True)
    # the content of the other is counted under the copy's name as well, which is still there
    assert ([Path(error.url).name for error in found.bad], found.counted) == (["3.txt"], 1)


def test_a_renaming_changes_names_alone(store, corpus, embedded):
    run, before, ledger = Run(embedded), store.load(), set(store.ledger())
    place = moved(corpus)
    after = rename(store, str(corpus), str(place), run)
    assert after.load() == before
    assert urls(after) == [shard.url for shard in shards_of(place)]
    again = update(after, shards_of(place), run)
    assert (again.counted, again.already, again.store.version) == (0, 4, after.version)
    assert set(after.at(store.version).ledger()) == ledger
    assert after.verify() == []
    moved(place, corpus.name)
    back = rename(after, f"{place}/", f"{corpus}/", run)
    assert (set(back.ledger()), back.load()) == (ledger, before)


def test_shards_that_move_into_their_own_folder_leave_the_others_their_names(
    store, corpus, embedded, planted
):
    run, before = Run(embedded), store.load()
    place = corpus / "2026"
    place.mkdir()
    for folder in (corpus / "0", corpus / "1"):
        folder.rename(place / folder.name)
    (place / "new.txt").write_text("\n".join(planted[400:450]) + "\n")
    more = update(store, shards_of(corpus), run, skip_bad_shards=True)
    assert (more.counted, len(more.bad)) == (1, 4)
    after = rename(more.store, str(corpus), str(place), run)
    assert (urls(after), after.version) == (
        [shard.url for shard in shards_of(corpus)],
        more.store.version + 1,
    )
    assert update(after, shards_of(corpus), run).already == 5
    with pytest.raises(InvalidInput, match=r"of 5 counted shards, 5 are still at"):
        rename(after, str(corpus), str(place), run)
    assert after.load().n_documents == before.n_documents + 50


def test_shards_that_stay_keep_their_names(store, corpus, embedded):
    run, place = Run(embedded), corpus.with_name("elsewhere")
    (place / "0").mkdir(parents=True)
    (corpus / "0" / "0.txt").rename(place / "0" / "0.txt")
    (corpus / "0" / "2.txt").unlink()
    after = rename(store, str(corpus), str(place), run)
    assert urls(after) == [
        *(str(corpus / name) for name in ("0/2.txt", "1/1.txt", "1/3.txt")),
        str(place / "0" / "0.txt"),
    ]


def test_one_file_moves_without_its_neighbours(store, corpus, embedded):
    run, before = Run(embedded), store.load()
    file = corpus / "0" / "0.txt"
    (corpus / "1" / "10").mkdir()
    place = file.rename(corpus / "1" / "10" / "0.txt")
    after = rename(store, str(file), str(place), run)
    assert urls(after) == [shard.url for shard in shards_of(corpus)]
    assert (update(after, shards_of(corpus), run).already, after.load()) == (4, before)


def test_renamed_shards_can_be_forgotten_and_stay_so_when_they_move(store, corpus, embedded):
    run, before = Run(embedded), urls(store)
    gone = forget(store, shards_of(corpus / "0"), run)
    place = moved(corpus)
    after = rename(gone, str(corpus), str(place), run)
    assert {one.url for one in after.commit.forgotten.shards} == {
        shard.url for shard in shards_of(place / "0")
    }
    assert update(after, shards_of(place), run).counted == 0
    last = forget(after, shards_of(place / "1"), run)
    assert (len(last.ledger()), last.load().n_documents) == (0, 0)
    moved(place, corpus.name)
    nowhere = rename(last, str(place), str(corpus), run)
    assert {one.url for one in nowhere.commit.forgotten.shards} == set(before)


def test_a_model_is_not_stale_because_its_shards_have_moved(embedded, tmp_path):
    before = tmp_path / "before"
    counted = append(small(), {f"{before}/a": 1, f"{before}/b": 2})
    fitted = counted.save_model("m", model_of(1))
    # with a subtracted shard, whose segment is written again with the other
    less = small_forget(fitted, {f"{before}/a": 1})
    (tmp_path / "after").mkdir()
    for name in "ab":
        (tmp_path / "after" / name).touch()
    after = rename(less, str(before), str(tmp_path / "after"), Run(embedded))
    assert (urls(after), after.load()) == ([f"{tmp_path}/after/b"], total([2]))
    gone = total([1]).n_documents
    for one in (less, after):
        assert (staleness(one, "m").forgotten, forgotten_since(one, "m")) == (gone, gone)


def test_new_shards_after_a_renaming_are_the_only_change_of_a_model(embedded, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    counted = append(small(), {f"{before}/{name}": n for name, n in (("a", 1), ("b", 2))})
    fitted = counted.save_model("m", model_of(1))
    after.mkdir()
    for name in "ab":
        (after / name).touch()
    renamed = rename(fitted, str(before), str(after), Run(embedded))
    more = append(renamed, {f"{after}/c": 3})
    new, gone = total([3]).n_documents, total([1]).n_documents
    told = staleness(more, "m")
    assert (told.counted, told.forgotten) == (new, 0)
    told = staleness(small_forget(more, {f"{after}/a": 1}), "m")
    assert (told.counted, told.forgotten) == (new, gone)


def test_a_renaming_that_cannot_be_right_is_refused(store, corpus, embedded):
    run = Run(embedded)
    with pytest.raises(InvalidInput, match=r"no counted shard is named .*nowhere/.*such as"):
        rename(store, str(corpus / "nowhere"), str(corpus), run)
    with pytest.raises(InvalidInput, match=r"4 are still at .*; move the files first"):
        rename(store, str(corpus), str(corpus.with_name("typo")), run)
    shutil.copytree(corpus, corpus.with_name("copy"))
    both = update(store, shards_of(corpus.with_name("copy")), run).store
    with pytest.raises(InvalidInput, match="4 are still at .*rename --copies"):
        rename(both, str(corpus), str(corpus.with_name("copy")), run)
    with pytest.raises(InvalidInput, match="already counted under this new name"):
        rename(both, str(corpus), str(corpus.with_name("copy")), run, copies=True)
    assert both.latest().version == both.version


def test_shards_of_an_object_store_move_as_well(store, corpus, embedded):
    run, memory = Run(embedded), fsspec.filesystem("memory")
    memory.put(f"{corpus}/", "/moved-before/", recursive=True)
    counted = update(store, list_shards(["memory://moved-before/**/*.txt"]), run)
    memory.mv("/moved-before/", "/moved-after/", recursive=True)
    listed = list_shards(["memory://moved-after/**/*.txt"])
    left = update(counted.store, listed, run, skip_bad_shards=True)
    assert (len(left.bad), left.counted) == (len(listed), 0)
    after = rename(left.store, "memory://moved-before", "memory://moved-after", run)
    assert (update(after, listed, run).already, after.load()) == (4, counted.store.load())


def test_what_is_at_a_place_that_cannot_be_listed_has_not_moved(
    store, corpus, embedded, monkeypatch
):
    def refused(folder, storage_options):
        raise ShardError(folder, "may not be listed")

    monkeypatch.setattr(listed_moved, "open_file_system", refused)
    found = update(store, shards_of(moved(corpus)), Run(embedded))
    assert (found.counted, len(found.copies)) == (4, 4)


def test_the_command_and_the_store_in_python_rename(store, corpus, run):
    place = moved(corpus)
    code, _, said = run("update", store.url, f"{place}/**/*.txt")
    assert (code, "have moved" in said, "`update --include-moved`" in said) == (2, True, True)
    code, out, _ = run("rename", store.url, str(corpus), str(place))
    assert (code, out) == (0, f"version 3: 4 shards of {corpus} renamed to {place}\n")
    code, out, _ = run("update", store.url, f"{place}/**/*.txt")
    assert (code, out) == (0, "version 3: no new shards, 4 counted before\n")
    moved(place, corpus.name)
    after = open_store(store.url).rename(str(place), str(corpus))
    assert sorted(record.url for record in after.snapshot.ledger()) == urls(store)

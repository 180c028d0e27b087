"""Rebase: new words from a fresh pilot, every shard counted anew, and killed on the way."""

import json

import pytest
from counted_alone import counted_at
from killed_jobs import rebase_until, require_killed

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import rebase as module
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.rebase import ShardsMissing, pilot_of, rebase
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
DAYS = tuple(f"2026-11-{day}" for day in range(16, 22))


@pytest.fixture
def folder(planted, tmp_path):
    """A shard a day; the last two days speak of a planet the first four never name."""
    for number, day in enumerate(DAYS):
        texts = planted[number * 60 : number * 60 + 60]
        if number > 3:
            texts = [f"{text} mars rover mars crater" for text in texts]
        (tmp_path / f"{day}.txt").write_text("\n".join(texts))
    return tmp_path


@pytest.fixture
def store(folder, embedded):
    """Made from the first days, with all days counted."""
    listed = list_shards([str(folder / "*.txt")])
    made = create(
        str(folder / "store"), listed[:4], ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
    )
    return update(made, listed, Run(embedded)).store


def serial(store, folder, days=DAYS):
    return counted_at(store, [folder / f"{day}.txt" for day in days])


def test_a_rebase_counts_every_shard_on_new_words(store, folder, embedded, run):
    old = store.load()
    assert "mars" not in store.vocabulary.terms
    assert pilot_of(store) == OPTIONS
    main_code = run("refit", store.url, "--topics", 3, "--name", "before")[0]
    result = rebase(store.latest(), Run(embedded))
    after = result.store
    assert (main_code, result.shards, result.left_out, result.resumed) == (0, 6, (), False)
    assert {"mars", "rover", "crater"} <= set(after.vocabulary.terms)
    assert after.load() == serial(after, folder)
    assert [str(part.dates) for part in after.commit.segments] == list(DAYS)
    assert after.verify() == []
    assert set(after.ledger()) != set(store.ledger())
    assert {shard.url for shard in after.ledger()} == {shard.url for shard in store.ledger()}
    # the old lineage is as it was
    assert MomentStore.open(store.url, store.version).load() == old
    # what was fitted before is shown and used with its own words
    code, out, _ = run("topics", store.url, "--model", "before", "--json")
    words = {word for topic in json.loads(out)["topics"] for word in topic["words"]}
    assert code == 0
    assert words <= set(store.vocabulary.terms)
    shard, output = folder / f"{DAYS[5]}.txt", folder / "out"
    given = ("--output", output, "--model", "before")
    assert run("transform", store.url, shard, *given)[0] == 0
    assert run("refit", store.url, "--topics", 3, "--name", "after")[0] == 0
    code, out, err = run("diff", store.url, store.version + 1, after.version + 1)
    assert (code, err) == (0, "")
    assert update(after, list_shards([str(folder / "*.txt")]), Run(embedded)).already == 6


def test_shards_that_are_gone_or_changed_stop_it_unless_allowed(store, folder, embedded, run):
    (folder / f"{DAYS[0]}.txt").unlink()
    changed = folder / f"{DAYS[1]}.txt"
    changed.write_text(changed.read_text().replace("w", "v", 1))
    with pytest.raises(ShardsMissing) as told:
        rebase(store, Run(embedded))
    assert "2 of 6 counted shards" in str(told.value)
    assert f"{DAYS[0]}.txt is gone; " in str(told.value)
    assert f"{DAYS[1]}.txt has changed since it was counted" in str(told.value)
    assert "--allow-missing" in str(told.value)
    assert store.latest().version == store.version
    code, out, err = run("rebase", store.url, "--allow-missing", "--json")
    shown = json.loads(out)
    assert (code, err, shown["shards"]) == (0, "", 4)
    assert [left["reason"] for left in shown["left_out"]] == [
        "is gone",
        "has changed since it was counted",
    ]
    after = MomentStore.open(store.url)
    assert after.load() == serial(after, folder, DAYS[2:])
    assert [url for url, _ in after.commit.skipped] == [left["url"] for left in shown["left_out"]]
    # what was changed is counted with its new content by the next update
    assert update(after, list_shards([str(folder / "*.txt")]), Run(embedded)).counted == 1


@pytest.mark.parametrize(
    ("moment", "after", "reads"),
    [("draw_pilot", 1, 6), ("gather_group", 2, 5), ("stage_segment", 3, 3)],
)
def test_a_killed_rebase_goes_on_where_it_was(
    store, folder, embedded, monkeypatch, moment, after, reads
):
    old = store.load()
    require_killed(rebase_until, moment, after, store.url)
    left = MomentStore.open(store.url)
    assert left.load() == old
    assert left.verify() == []
    gather, groups = module.gather_group, []
    monkeypatch.setattr(module, "gather_group", lambda *a: groups.append(gather(*a)) or groups[-1])
    result = rebase(left, Run(embedded))
    assert result.resumed == (moment != "draw_pilot")
    assert sum(len(group.shards) for group in groups) == reads
    assert result.store.load() == serial(result.store, folder)
    assert result.store.verify() == []


@pytest.mark.parametrize("deed", ["counted", "forgotten"])
def test_what_others_do_meanwhile_is_in_the_new_lineage(
    store, folder, embedded, planted, monkeypatch, deed
):
    real = module.adopt
    late = folder / "2026-11-22.txt"
    late.write_text("\n".join(planted[500:540]))
    first = list_shards([str(folder / f"{DAYS[0]}.txt")])

    def overtaken(*arguments):
        monkeypatch.undo()
        if deed == "counted":
            update(store, list_shards([str(late)]), Run(embedded))
        else:
            forget(store, first, Run(embedded))
        return real(*arguments)

    monkeypatch.setattr(module, "adopt", overtaken)
    after = rebase(store, Run(embedded)).store
    days = (*DAYS, "2026-11-22") if deed == "counted" else DAYS[1:]
    assert after.load() == serial(after, folder, days)
    assert after.verify() == []


def test_a_shard_that_cannot_be_read_stops_it_and_what_was_gathered_stays(
    store, folder, embedded, monkeypatch
):
    real = module.gather_group

    def spoilt(gathering, waiting, *counts):
        if waiting[0].shards[0].url.endswith(f"{DAYS[3]}.txt"):
            raise ShardError(waiting[0].shards[0].url, "cannot be read")
        return real(gathering, waiting, *counts)

    monkeypatch.setattr(module, "gather_group", spoilt)
    with pytest.raises(ShardError, match="cannot be read"):
        rebase(store, Run(embedded))
    monkeypatch.undo()
    left = store.latest()
    assert len(left.commit.staged.segments) == 3
    assert rebase(left, Run(embedded)).resumed


def test_a_store_without_shards_has_nothing_to_choose_words_from(folder, embedded, run):
    listed = list_shards([str(folder / "*.txt")])
    made = create(str(folder / "s"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    code, _, err = run("rebase", made.url)
    assert code == 2
    assert "so there is nothing to read" in err
    assert made.latest().version == 0

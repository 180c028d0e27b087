"""Daily updates that merge what they have counted: the numbers of a store that never merges."""

import json
import shutil
from datetime import date, timedelta

import numpy as np
import pytest
from command_runs import run_command

from streaming_moments import open_store
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.levels import commit_sum
from streaming_moments.storage.operations.shares_over_time import shares_over_time
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
DAYS = [(date(2026, 11, 1) + timedelta(days=number)).isoformat() for number in range(9)]
FEW = DAYS[:5]  # so many that a sum of two is in a sum of two


def by_day(url, folder, suffix, run, after, days=DAYS):
    """A store that counts the shards day by day."""
    store = MomentStore.open(url)
    for day in days:
        store = update(store, list_shards([str(folder / f"{day}.{suffix}")]), run).store
        store = compact_when_many(store, after, run)
    return store


@pytest.fixture(scope="module")
def texts(planted, embedded, tmp_path_factory):
    """A folder of a shard a day, a store that never merged, and one that merges two of a level."""
    folder, run = tmp_path_factory.mktemp("levels"), Run(embedded)
    for number, day in enumerate(DAYS):
        (folder / f"{day}.txt").write_text("\n".join(planted[number::9]))
    listed = list_shards([str(folder / "*.txt")])
    pilot = PilotOptions(max_topics=4, pilot_documents=600)
    for name in ("plain", "merged"):
        create(str(folder / name), listed, ShardFormat(), TokenPolicy(), pilot, run)
    plain = by_day(str(folder / "plain"), folder, "txt", run, 0)
    return folder, plain, by_day(str(folder / "merged"), folder, "txt", run, 2)


def same(one, other):
    assert one.topics.tolist() == other.topics.tolist()
    assert one.weights.tolist() == other.weights.tolist()


def test_models_windows_and_shares_are_the_same_to_the_bit(texts, embedded):
    _, plain, merged = texts
    assert (len(plain.parts), len(merged.commit.segments)) == (9, 9)
    assert len(merged.parts) <= 4
    run = Run(embedded)
    model = refit(plain, 3, 0.1, run)
    same(model, refit(merged, 3, 0.1, run))
    for window in (
        Window(date(2026, 11, 2), date(2026, 11, 8)),
        Window(date(2026, 11, 5)),
        Window(half_life=3),
    ):
        one, other = (
            refit(WindowedStore.of(store, window), 3, 0.1, run) for store in (plain, merged)
        )
        same(one, other)
    assert shares_over_time(plain, model, "day") == shares_over_time(merged, model, "day")
    assert set(plain.ledger()) == set(merged.ledger())
    assert merged.verify() == []
    assert merged.at(-1).load() == plain.load()


def test_what_is_forgotten_or_replaced_goes_from_all_sums(texts, embedded, tmp_path):
    folder, *_ = texts
    for name in ("plain", "merged"):
        shutil.copytree(folder / name, tmp_path / name)
    run, left = Run(embedded), []
    for name, after in (("plain", 0), ("merged", 2)):
        store = MomentStore.open(str(tmp_path / name))
        store = forget(store, list_shards([str(folder / f"{DAYS[2]}.txt")]), run)
        store = compact_when_many(store, after, run)
        left.append(store)
    plain, merged = left
    assert plain.load() == merged.load()
    assert len(merged.parts) < len(plain.parts)
    assert merged.verify() == []
    same(refit(plain, 3, 0.1, run), refit(merged, 3, 0.1, run))


def test_the_command_says_how_many_segments_a_refit_reads(texts, capsys):
    folder, plain, merged = texts
    told = []
    for store in (plain, merged):
        with pytest.raises(SystemExit):
            main(["status", store.url, "--json"])
        told.append(json.loads(capsys.readouterr().out))
    assert [one["segments"] for one in told] == [9, 9]
    assert [one["segments_read"] for one in told] == [9, len(merged.parts)]
    with pytest.raises(SystemExit):
        main(["status", merged.url, "--verbose"])
    printed = capsys.readouterr().out
    assert f"segments 9; a refit reads {len(merged.parts)}" in " ".join(printed.split())
    with pytest.raises(SystemExit):
        main(["update", merged.url, str(folder / "*.txt"), "--compact-after", "2", "--json"])
    done = json.loads(capsys.readouterr().out)
    assert (done["segments"], done["segments_read"]) == (9, len(merged.parts))


def test_a_store_from_python_merges_too(texts, tmp_path):
    folder, plain, _ = texts
    shutil.copytree(folder / "plain", tmp_path / "store")
    store = open_store(str(tmp_path / "store"))
    with pytest.raises(InvalidInput, match="compact_after is -1"):
        store.update(str(folder / "*.txt"), compact_after=-1)
    never = store.update(str(folder / "*.txt"), compact_after=0)
    assert never.version == store.version
    after = store.update(str(folder / "*.txt"), compact_after=3)
    assert len(after.snapshot.parts) < len(plain.parts)
    assert after.snapshot.load() == plain.load()


def test_an_update_goes_on_where_another_writer_has_merged_first(texts, embedded, tmp_path):
    folder, plain, _ = texts
    shutil.copytree(folder / "plain", tmp_path / "store")
    store, run = MomentStore.open(str(tmp_path / "store")), Run(embedded)
    others = []
    patch = pytest.MonkeyPatch()

    def other_first(*arguments):
        patch.undo()
        others.append(compact_when_many(store, 3, run))
        return commit_sum(*arguments)

    patch.setattr("streaming_moments.pipelines.jobs.compact.commit_sum", other_first)
    ours = compact_when_many(store, 3, run)
    assert ours.version == others[0].version
    assert ours.load() == plain.load()
    assert ours.verify() == []


def content(kind, number):
    rng = np.random.default_rng([5, number])
    if kind == "sequences":
        return "".join("".join(rng.choice(list("abcd"), 12)) + "\n" for _ in range(20))
    values = 12 if kind == "edges" else 2
    rows = rng.integers(0, values, (20, 2 if kind == "edges" else 3))
    if kind == "vectors":
        rows = rng.normal(size=rows.shape)
    before = "" if kind in ("vectors", "sets") else "v"
    lines = [",".join(f"{before}{one}" for one in row) + "\n" for row in rows]
    return "".join(["a,b\n" if kind == "edges" else "a,b,c\n", *lines])


KINDS = {
    "sequences": ("--kind", "sequences", "--min-documents", "1"),
    "views": ("--kind", "views", "--columns", "a,b,c", "--min-documents", "1"),
    "tables": ("--categories", "a,b,c", "--min-documents", "1"),
    "edges": ("--kind", "edges", "--columns", "a,b", "--sketch-columns", "3"),
    "vectors": ("--kind", "vectors", "--columns", "a,b,c", "--squares", "--fourth"),
    "sets": ("--kind", "sets", "--columns", "a,b,c"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_stores_of_every_kind_are_the_same_to_the_bit(kind, embedded, tmp_path):
    suffix = "txt" if kind == "sequences" else "csv"
    for number, day in enumerate(FEW):
        (tmp_path / f"{day}.{suffix}").write_text(content(kind, number))
    stores = []
    for after in (0, 2):
        url = str(tmp_path / f"store{after}")
        run_command("create", url, str(tmp_path / f"*.{suffix}"), *KINDS[kind])
        stores.append(by_day(url, tmp_path, suffix, Run(embedded), after, FEW))
    plain, merged = stores
    assert len(plain.parts) == 5
    assert len(merged.parts) == 2
    assert merged.verify() == []
    for one, other in [(plain.load(), merged.load())]:
        for name, array in one.arrays().items():
            assert array.tolist() == other.arrays()[name].tolist()
        tables = one.totals.tables(), other.totals.tables()
        assert {key: value.tolist() for key, value in tables[0].items()} == {
            key: value.tolist() for key, value in tables[1].items()
        }
    whole = plain.totals().tables(), merged.totals().tables()
    assert {key: value.tolist() for key, value in whole[0].items()} == {
        key: value.tolist() for key, value in whole[1].items()
    }

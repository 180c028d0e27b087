"""Growth on shards: words found in a sample; both eras forgotten, replaced, fitted; by night."""

import json
import math
import shutil

import numpy as np
import pytest
from command_runs import run_command
from widening import widened

from streaming_moments import MomentStatistics
from streaming_moments.errors import InvalidInput
from streaming_moments.models.fit import fit_by
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.drift.measure_drift import measure_drift
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.grow import grow, recent_shards
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.quality.mixture_shares import mixture_shares
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.kinds.registry import reader_of
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.growth import store_of_era
from streaming_moments.storage.operations.shares_over_time import shares_over_time
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=300, core=100, max_topics=4, min_documents=5)
NEW = ("mars", "rover", "crater")
DAYS = ("2026-11-16", "2026-11-17", "2026-11-18", "2026-11-19")


def texts_with(planted, start, words):
    """Sixty documents; every third has some more words."""
    more = " ".join(words)
    return "\n".join(
        f"{text} {more}" if number % 3 == 0 and more else text
        for number, text in enumerate(planted[start : start + 60])
    )


@pytest.fixture
def folder(planted, tmp_path):
    """A shard a day; the last two speak of a planet the first two never name."""
    for number, day in enumerate(DAYS):
        words = (*(NEW * 4), "mars") if number > 1 else ()
        (tmp_path / f"{day}.txt").write_text(texts_with(planted, number * 60, words))
    return tmp_path


@pytest.fixture
def store(folder, embedded):
    """Made from the first two days, which are counted."""
    listed = list_shards([str(folder / "*.txt")])[:2]
    made = create(
        str(folder / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
    )
    return update(made, listed, Run(embedded)).store


def shards_of(folder, *days):
    return list_shards([str(folder / f"{day}.txt") for day in days])


def counted(store, folder, words, *days):
    """Statistics of days counted with the vocabulary of so many words, on today's."""
    era = store_of_era(store, None if words == store.basis.n_words else words)
    batches = [
        read.batch
        for shard in shards_of(folder, *days)
        for read in reader_of(era, ReadLimits()).read(shard)
    ]
    return widened(MomentStatistics.of(concatenate(batches), era.basis), store.basis)


def test_words_of_new_shards_are_counted_from_then_on(store, folder, embedded):
    before, old = store, store.basis.n_words
    result = grow(store, shards_of(folder, DAYS[2]), Run(embedded))
    assert result.words[0] == "mars"
    assert set(NEW) <= set(result.words)
    assert (result.documents, result.shards) == (60, 1)
    store = update(result.store, shards_of(folder, *DAYS[2:]), Run(embedded)).store
    both = counted(store, folder, old, *DAYS[:2]) + counted(
        store, folder, store.basis.n_words, *DAYS[2:]
    )
    assert store.load() == both
    assert store.verify() == []
    assert grow(store, shards_of(folder, DAYS[2]), Run(embedded)).words == ()
    assert grow(store, shards_of(folder, DAYS[2]), Run(embedded)).store.version == store.version
    for method in ("joint", "power"):
        model = refit(store, 3, 1.0, Run(embedded), method)
        expected = fit_by(both, 3, 1.0, method)
        assert np.allclose(model.topics, expected.topics, rtol=0, atol=1e-9)
        assert np.allclose(model.word_probabilities, expected.word_probabilities)
    best = select(store, [3], [1.0], Run(embedded)).best
    assert best.captured == pytest.approx(refit(store, 3, 1.0, Run(embedded)).captured)
    drift = measure_drift(store, before, 3, 1.0, Run(embedded))
    assert 0 < drift.pair_distance < 1


def test_shards_of_either_era_are_forgotten_and_replaced(store, folder, embedded, planted):
    old = store.basis.n_words
    store = grow(store, shards_of(folder, DAYS[2]), Run(embedded)).store
    store = update(store, shards_of(folder, *DAYS[2:]), Run(embedded)).store
    new = store.basis.n_words
    whole = store
    gone = forget(store, shards_of(folder, DAYS[0], DAYS[2]), Run(embedded))
    left = counted(gone, folder, old, DAYS[1]) + counted(gone, folder, new, DAYS[3])
    assert gone.load() == left
    assert gone.verify() == []
    small = compact(gone, Run(embedded), by="all")
    assert len(small.commit.segments) == 2
    assert small.load() == left
    assert small.verify() == []
    # the old content of the first era is taken away with its words, the new counted with today's
    path = folder / f"{DAYS[1]}.txt"
    copy = folder / "copy.txt"
    copy.write_bytes(path.read_bytes())
    path.write_text(texts_with(planted, 600, NEW))
    changed = update(
        small, shards_of(folder, DAYS[1]), Run(embedded), old=list_shards([str(copy)])
    ).store
    assert changed.load() == counted(changed, folder, new, DAYS[1], DAYS[3])
    assert changed.verify() == []
    path.write_bytes(copy.read_bytes())
    assert whole.at(whole.version).load() == whole.load()


class Growing:
    """Another writer, who adds words at the first sign of a step."""

    def __init__(self, store, shards, step, cluster):
        self.growth = (store, shards, Run(cluster))
        self.step, self.done = step, False

    def advance(self, step, done, total):
        if step == self.step and not self.done:
            self.done = True
            grow(*self.growth)


def test_an_update_that_began_before_the_growth_counts_without_the_words(store, folder, embedded):
    old, more = store.basis.n_words, shards_of(folder, *DAYS[2:])
    other = Growing(store, more[:1], "reading shards", embedded)
    after = update(store, more, Run(embedded, progress=other)).store
    assert after.basis.n_words > old
    assert after.load() == counted(after, folder, old, *DAYS)
    assert after.verify() == []
    assert forget(after, more[1:], Run(embedded)).load() == counted(after, folder, old, *DAYS[:3])


def test_a_compaction_that_began_before_the_growth_keeps_the_eras_apart(store, folder, embedded):
    old = store.basis.n_words
    for day in DAYS[2:]:
        (folder / f"{day}.txt").rename(folder / f"{day.replace('-11-', '-12-')}.txt")
    late = [day.replace("-11-", "-12-") for day in DAYS[2:]]
    store = update(store, shards_of(folder, *late), Run(embedded)).store
    other = Growing(store, shards_of(folder, late[0]), "compacting row blocks", embedded)
    small = compact(store, Run(embedded, progress=other), by="month")
    assert [part.words for part in small.commit.segments] == [old, old]
    assert small.load() == counted(small, folder, old, *DAYS[:2], *late)
    assert small.verify() == []


def test_the_shards_counted_last_are_looked_at_first(store, folder, embedded):
    store = update(store, shards_of(folder, *DAYS[2:]), Run(embedded)).store
    urls = [shard.url for shard in recent_shards(store, Run(embedded))]
    assert urls[0].endswith(f"{DAYS[3]}.txt")
    assert len(urls) == 4
    (folder / f"{DAYS[3]}.txt").unlink()
    assert [shard.url for shard in recent_shards(store, Run(embedded))] == urls[1:]
    for day in DAYS[:3]:
        (folder / f"{day}.txt").unlink()
    with pytest.raises(InvalidInput, match="none of the latest 4 shards .* give SHARDS"):
        recent_shards(store, Run(embedded))


def test_token_ids_grow_by_their_ids(tmp_path, embedded):
    rng = np.random.default_rng(1)

    def written(name, highest):
        lines = []
        for _ in range(80):
            ids = np.unique(rng.integers(0, highest, 12))
            lines.append(f"{len(ids)} " + " ".join(f"{own}:{rng.integers(1, 4)}" for own in ids))
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return list_shards([str(tmp_path / name)])

    first, second = written("a.dat", 30), written("b.dat", 36)
    options = PilotOptions(core=20, max_topics=3, min_documents=2, max_document_fraction=0.9)
    store = create(str(tmp_path / "store"), first, ShardFormat(), None, options, Run(embedded))
    store = update(store, first, Run(embedded)).store
    result = grow(store, second, Run(embedded), words=4)
    assert len(result.words) == 4
    assert set(result.words) < {str(own) for own in range(30, 36)}
    assert result.store.vocabulary.token_ids[-4:] == tuple(map(int, result.words))
    store = update(result.store, second, Run(embedded)).store
    assert store.load().word_counts[-4:].min() > 0
    assert store.verify() == []


def test_the_command_grows_once_and_status_and_topics_say_since_when(store, folder, run):
    source = folder / f"{DAYS[2]}.txt"
    grown = json.loads(run("grow", store.url, source, "--words", "9", "--json")[1])
    added, version = grown["added"], store.version + 1
    assert (grown["version"], sorted(added[:3])) == (version, sorted(NEW))
    assert len(added) < 9
    assert "no words to add" in run("grow", store.url, source)[1]
    assert MomentStore.open(store.url).version == version
    run("update", store.url, *(folder / f"{day}.txt" for day in DAYS[2:]))
    told = ("--topics", "2", "--alpha0", "0.1", "--refine", "0", "--name", "now")
    assert run("refit", store.url, *told)[0] == 0
    day = MomentStore.open(store.url, version).commit.time[:10]
    assert f"{len(added)} words since version {version} ({day})" in run("status", store.url)[1]
    [told] = json.loads(run("status", store.url, "--json")[1])["added_words"]
    assert (told["words"], told["version"], told["time"][:10]) == (len(added), version, day)
    shown = run("topics", store.url, "--words", "80")[1]
    assert "mars*" in shown
    assert f"* counted since version {version} ({day}): {', '.join(sorted(added))}" in shown
    topics = json.loads(run("topics", store.url, "--words", "80", "--json")[1])
    assert topics["counted_since"] == dict.fromkeys(added, version)
    assert "*" not in run("topics", store.url, "--words", "1", "--relevance", "1")[1]
    assert '"grow"' in run("log", store.url, "--json")[1]
    assert run("verify", store.url)[0] == 0


def test_wrong_input_of_the_command_is_one_line_and_no_commit(store, folder, run):
    for arguments, said in (
        ((folder / "no-such.txt",), "no-such.txt"),
        (("--words", "0"), "--words"),
    ):
        code, out, err = run("grow", store.url, *arguments)
        assert (code, out) == (2, "")
        assert said in err
        assert len(err.splitlines()) == 1
    for day in DAYS:
        (folder / f"{day}.txt").unlink()
    code, _, err = run("grow", store.url)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "give SHARDS" in err
    assert store.latest().version == store.version


def test_a_night_adds_the_words_that_the_next_counts(folder, planted, capsys):
    def night(number, above=0.01):
        words = NEW * 4 if number > 1 else ()
        (folder / f"shard-2026-12-0{number}.txt").write_text(
            texts_with(planted, 60 * number, words)
        )
        path = folder / "night.toml"
        path.write_text(
            f'store = "{folder}/nights"\nshards = "{folder}/shard-*.txt"\n'
            f'output = "{folder}/reports"\n[refit]\ntopics = 2\nalpha0 = 1\n'
            "[create]\nmin_documents = 5\nvocabulary_size = 200\ncore = 80\nmax_topics = 3\n"
            f"[growth]\noutside_above = {above!r}\nwords = 3\n"
        )
        run_command("nightly", path)
        report = json.loads((folder / "reports" / "latest.json").read_text())
        return {step["step"]: step["values"] for step in report["steps"]}

    night(1)
    first = MomentStore.open(f"{folder}/nights")
    kept, aside = f"{folder}/nights", f"{folder}/aside"
    shutil.copytree(kept, aside)
    share = night(2, 1)["drift"]["outside_share"]
    shutil.rmtree(kept)
    shutil.copytree(aside, kept)
    assert "growth" not in night(2, share), "the bound itself is not above it"
    shutil.rmtree(kept)
    shutil.copytree(aside, kept)
    steps = night(2, math.nextafter(share, 0))
    assert steps["growth"]["outside_share"] == share
    assert steps["growth"]["words"] == 3
    second = MomentStore.open(f"{folder}/nights")
    assert set(NEW) == set(second.vocabulary.terms) - set(first.vocabulary.terms)
    assert steps["growth"]["version"] == second.commit.lineage.eras[-1].version
    assert not second.load().word_counts[-3:].any()
    steps = night(3)
    third = MomentStore.open(f"{folder}/nights")
    rows = [third.vocabulary.index[word] for word in NEW]
    assert third.load().word_counts[rows].min() >= 20
    assert third.verify() == []
    assert steps["drift"]["pair_distance"] is not None


def test_shares_over_time_have_the_days_after_the_growth(store, folder, embedded, run):
    """Of a model from before it, and of one from after it those before."""
    here, old = Run(embedded), store.basis.n_words
    store = store.save_model("early", refit(store, 3, 1.0, here))
    store = grow(store, shards_of(folder, DAYS[2]), here).store
    store = update(store, shards_of(folder, *DAYS[2:]), here).store
    store = store.save_model("late", refit(store, 3, 1.0, here))
    asked = ("topics", store.url, "--model", "early", "--over-time", "day", "--json")
    days = json.loads(run(*asked)[1])["over_time"]
    assert tuple(day["first"] for day in days) == DAYS
    model = store.load_model("early")
    for one, day in zip(shares_over_time(store, model, "day"), DAYS, strict=True):
        words = old if day in DAYS[:2] else store.basis.n_words
        counts = counted(store, folder, words, day).word_counts[:old]
        assert one.tokens == counts.sum()
        assert one.shares == tuple(mixture_shares(model, counts)[0].tolist())
    model, n = store.load_model("late"), store.basis.n_words
    [month] = shares_over_time(store, model, "month")
    parts = [counted(store, folder, old, *DAYS[:2]), counted(store, folder, n, *DAYS[2:])]
    tokens = [part.word_counts[:old].sum() for part in parts]
    in_share = np.where(np.arange(n) < old, 1.0, tokens[1] / sum(tokens))
    known = sum(part.word_counts for part in parts), in_share
    assert month.shares == tuple(mixture_shares(model, *known)[0].tolist())

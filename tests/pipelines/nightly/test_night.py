"""Nights on a local disk: drift against the serial numbers, gates, locks, and what goes wrong."""

import dataclasses
import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from command_runs import run_command

from streaming_moments import fit
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models import halves as fits_of_halves
from streaming_moments.models.chains import HiddenMarkovModel
from streaming_moments.models.fit import fit_by
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers import number_search
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.aggregation import aggregation
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.candidates import Selection
from streaming_moments.pipelines.jobs.choose import chosen_options
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.drift.measure_drift import measure_drift
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.nightly.config import RefitSection, config_of
from streaming_moments.pipelines.nightly.gates import GatesSection, judged, reasons_of
from streaming_moments.pipelines.nightly.steps.chosen_model import chosen_model
from streaming_moments.pipelines.nightly.steps.unused_keys import (
    left_out_topics,
    unused_options,
)
from streaming_moments.pipelines.reports.page import Gate
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
CREATE = "[create]\nmin_documents = 2\nvocabulary_size = 120\nmax_topics = 4\n"
OPTIONS = PilotOptions(vocabulary_size=120, core=90, max_topics=5, min_documents=2)


@pytest.fixture(scope="module")
def counted(planted, tmp_path_factory, embedded):
    """A store at two versions: the shards of two days, then of a third."""
    folder = tmp_path_factory.mktemp("nightly")
    for number in range(3):
        texts = planted[number * 200 : number * 200 + 200]
        (folder / f"2026-11-2{number}.txt").write_text("\n".join(texts))
    listed = list_shards([str(folder / "*.txt")])
    place = str(folder / "store")
    made = create(place, listed[:1], ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    return update(update(made, listed[:2], Run(embedded)).store, listed, Run(embedded)).store


def test_drift_from_row_blocks_is_that_of_whole_states(counted, embedded):
    before, now = counted.at(counted.version - 1), counted
    found = measure_drift(now, before, 4, 1.0, Run(embedded))
    core = counted.basis.core
    P, R = (store.load().pair_counts[:core] for store in (before, now))
    assert found.pair_distance == pytest.approx(np.abs(P / P.sum() - R / R.sum()).sum() / 2)
    assert found.captured == pytest.approx(fit(now.load(), 4, 1.0).captured)
    assert found.effective_documents == now.length_histogram().effective_documents
    last = max(now.ledger(), key=lambda record: record.url)
    assert found.outside_share == last.outside / (last.outside + last.tokens)
    alone = measure_drift(now, None, 4, 1.0, Run(embedded))
    assert alone.pair_distance is None
    assert alone.captured == found.captured
    tokens = sum(record.tokens for record in now.ledger())
    outside = sum(record.outside for record in now.ledger())
    assert alone.outside_share == outside / (outside + tokens)
    # more topics than the basis has columns: no spectrum to compare
    assert measure_drift(now, None, 99, 1.0, Run(embedded)).captured is None


@pytest.mark.parametrize("halves", [True, False])
def test_what_select_takes_of_all_pairs_is_taken(counted, embedded, tmp_path, monkeypatch, halves):
    monkeypatch.setattr(number_search, "TRIED_TOPICS", (2, 4))
    monkeypatch.setattr(fits_of_halves, "TRIED_ROUNDS", (1, 2))
    source = counted
    if not halves:
        shutil.copytree(counted.url.removeprefix("file://"), tmp_path / "store")
        copy = MomentStore.open(str(tmp_path / "store"))
        source = rebase(copy, Run(embedded), halves=False).store
    section = RefitSection(topics=(2, 4, 60), alpha0=(0.0, 1.0), further={"refine": 1})
    told = []
    chosen = chosen_model(source, section, Run(embedded, tell=told.append))
    model, tried = chosen.model, chosen.tried
    assert [(one.n_topics, one.alpha0) for one in tried] == [
        (k, alpha0) for alpha0 in (0.0, 1.0) for k in (2, 4, 60)
    ]
    fitted = [one for one in tried if one.n_topics < 60]
    assert all("60 topics are asked for" in one.refusal for one in tried if one not in fitted)
    if halves:
        best = Selection(tried, 0.0).likely[0]
        assert chosen.why.startswith(f"Chose {best.n_topics} topics")
    else:
        best = max(fitted, key=lambda one: one.npmi)
        assert chosen.why.startswith(
            "the most coherent model, because there are no held-out word pairs: "
        )
    assert chosen.why in told
    assert (model.n_topics, model.alpha0) == (best.n_topics, best.alpha0)
    assert model.npmi.mean() == pytest.approx(best.npmi)
    expected = fit(source.load(), best.n_topics, best.alpha0, refine=1)
    assert np.allclose(model.topics, expected.topics)
    with pytest.raises(NotIdentifiable, match="60 topics are asked for"):
        chosen_model(source, RefitSection(topics=(60,), alpha0=(1.0,)), Run(embedded))
    night = {"store": "s", "shards": "*.txt", "output": "r"}
    auto = {"topics": "auto", "alpha0": 1.0, "refine": "auto"}
    section = config_of({**night, "refit": auto}, "night.toml").refit
    if not halves:
        with pytest.raises(InvalidInput, match="give a number for topics and refine in .refit."):
            chosen_model(source, section, Run(embedded))
        return
    found = chosen_model(source, section, Run(embedded, tell=told.append)).model
    options = chosen_options(
        source, TopicOptions(topics=1, alpha0=1.0), section.auto, Run(embedded)
    )
    assert (found.n_topics, found.refined) == (options.topics, options.refine)
    assert re.match(r"Chose \d+ rounds", told[-1])


@pytest.mark.parametrize("alphas", [(1.0,), (0.5, 1.0)])
def test_the_method_of_the_configuration_is_taken(counted, embedded, alphas):
    section = RefitSection(topics=(3,), alpha0=alphas, method="power", seed=5)
    model = chosen_model(counted, section, Run(embedded)).model
    expected = fit_by(counted.load(), 3, model.alpha0, "power", 5)
    assert model.method == "power"
    assert np.allclose(model.topics, expected.topics)


def test_models_without_coherence_cannot_be_compared(counted, planted, tmp_path, embedded):
    shard = tmp_path / "a.txt"
    shard.write_text("\n".join(planted[:150]))
    listed = list_shards([str(shard)])
    place = str(tmp_path / "store")
    store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded), False)
    store = update(store, listed, Run(embedded)).store
    with pytest.raises(InvalidInput, match="2 models cannot be compared"):
        chosen_model(store, RefitSection(topics=(2, 3)), Run(embedded))
    chosen = chosen_model(store, RefitSection(topics=(2,)), Run(embedded))
    model, [only] = chosen.model, chosen.tried
    assert (model.n_topics, only.npmi) == (2, None)


def model_with(npmi, weights):
    model = TopicModel.from_topics(np.eye(2), np.array(weights))
    return model.with_coherence(np.zeros(2), np.array(npmi))


def test_a_value_that_a_gate_rejects_looks_otherwise_than_the_bound():
    assert reasons_of([Gate("drop", 0.0500001, 0.05, False)]) == (
        "drop: 0.0500001, the gate allows at most 0.05",
    )
    least = Gate("effective documents", 999.9999, 1000, False, least=True)
    assert reasons_of([least]) == ("effective documents: 999.9999, the gate allows at least 1,000",)


def test_each_gate_rejects_what_is_beyond_its_bound_and_no_more():
    gates = GatesSection(
        max_coherence_drop=0.125,
        max_pair_distance=0.2,
        min_effective_documents=100,
        min_topic_weight=0.25,
    )
    yesterday = model_with([0.5, 0.25], [0.5, 0.5])
    good = judged(model_with([0.375, 0.125], [0.75, 0.25]), yesterday, Drift(1, 0, 100, 0.2), gates)
    assert reasons_of(good) == ()
    assert len(good) == 4
    bad = judged(model_with([0.25, 0.0], [0.875, 0.125]), yesterday, Drift(1, 0, 99, 0.3), gates)
    assert reasons_of(bad) == (
        "drop of coherence: 0.25, the gate allows at most 0.125",
        "distance of pair distributions: 0.3, the gate allows at most 0.2",
        "effective documents: 99, the gate allows at least 100",
        "weight of the smallest topic: 0.125, the gate allows at least 0.25",
    )
    # on the first night there is nothing to compare with
    first = judged(model_with([0.2, 0.0], [0.5, 0.5]), None, Drift(1, 0, 100, None), gates)
    assert reasons_of(first) == ()


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A model that says nothing of itself but how many documents it is of."""

    name: ClassVar[str] = "unknown"
    documents: int = 400


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        ("min_captured", "captured spectrum"),
        ("min_effective_documents", "effective documents"),
        ("min_topic_weight", "weight of the smallest topic"),
    ],
)
def test_what_is_not_known_passes_no_least_bound_but_0(gate, name):
    drift = Drift(None, None, None, None)
    for bound, holds in ((0.25, False), (0, True)):
        gates = judged(Unknown(), None, drift, GatesSection(**{gate: bound}))
        found = [one for one in gates if one.name == name]
        # a bound of 0 is the default of the last gate, which then judges nothing
        assert all((one.value, one.bound, one.holds) == (None, bound, holds) for one in found)
        assert len(found) == 1 or (bound == 0 and gate == "min_topic_weight")
        assert bool(reasons_of(found)) is not holds


def test_a_gate_that_is_not_set_is_not_shown():
    drift = Drift(None, None, 1, None)
    assert judged(Unknown(), None, drift, GatesSection()) == ()
    [gate] = judged(Unknown(), None, drift, GatesSection(min_documents=400))
    assert gate.name == "documents"


def test_a_least_bound_is_of_what_is_known():
    gates = GatesSection(min_documents=400)
    drift = Drift(None, None, 1, None)
    assert reasons_of(judged(Unknown(), None, drift, gates)) == ()
    assert reasons_of(judged(Unknown(399), None, drift, gates)) == (
        "documents: 399, the gate allows at least 400",
    )


def test_a_drop_of_held_out_likelihood_is_rejected_where_it_is_known():
    gates = GatesSection(max_held_out_drop=0.25)
    plain = model_with([0.5, 0.5], [0.5, 0.5])
    yesterday, worse, worst = (
        dataclasses.replace(plain, held_out=HeldOut(mean - 0.5, mean + 0.5))
        for mean in (-8.0, -8.25, -8.5)
    )
    drift = Drift(1, 0, 100, None)

    def rejected(model, published):
        found = judged(model, published, drift, gates)
        assert len(found) == 1
        return reasons_of(found)

    assert rejected(worse, yesterday) == ()
    told = "drop of held-out likelihood: 0.5, the gate allows at most 0.25"
    assert rejected(worst, yesterday) == (told,)
    # without halves, on the first night, of other words: nothing is known
    others = dataclasses.replace(yesterday, vocabulary="other")
    for model, published in ((plain, yesterday), (worst, plain), (worst, None), (worst, others)):
        assert rejected(model, published) == ()


def test_what_is_not_known_of_the_model_itself_is_rejected():
    still = np.array([1.0])
    model = HiddenMarkovModel(np.array([[0.5], [0.5]]), np.eye(1), still, still)
    drift, bound = Drift(None, 0, np.nan, None), GatesSection(max_perplexity=1.5)
    said = "perplexity of a held-out symbol: not known, the gate allows at most 1.5"
    assert reasons_of(judged(model, None, drift, bound)) == (said,)
    known = dataclasses.replace(model, held_out=HeldOut(-1.0, -1.0))
    assert reasons_of(judged(known, None, drift, bound)) == ()


@pytest.fixture
def place(tmp_path, planted):
    """A folder with the shard of one day."""
    (tmp_path / "2026-11-20.txt").write_text("\n".join(planted[:200]))
    return tmp_path


def configured(place, more="", create=CREATE):
    path = place / "night.toml"
    path.write_text(
        f'store = "{place}/store"\nshards = "{place}/2026*.txt"\noutput = "{place}/reports"\n'
        f"[refit]\ntopics = 3\nalpha0 = 1\n{create}\n{more}"
    )
    return str(path)


def night(capsys, *arguments, **choices):
    return again(capsys, configured(*arguments, **choices))


def again(capsys, config):
    """A night of a configuration that is there."""
    with pytest.raises(SystemExit) as ended:
        main(["nightly", str(config)])
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


def latest(place):
    return json.loads((place / "reports" / "latest.json").read_text())


def test_two_runs_do_not_meet(place, capsys):
    folder = Folder.at(str(place / "store"))
    lock = Lock.acquire(folder, timedelta(hours=1))
    code, out, err = night(capsys, place)
    assert (code, out) == (2, "")
    assert "another run holds the lock" in err
    assert not (place / "reports").exists()
    lock.release()
    assert night(capsys, place)[0] == 0


def test_a_store_that_is_not_there_needs_a_create_table(place, capsys):
    code, _, err = night(capsys, place, create="")
    assert code == 2
    assert "add a [create] section to the configuration" in err
    report = latest(place)
    assert (report["outcome"], report["exit_code"]) == ("failed", 2)
    assert "[create]" in report["error"]
    assert [step["step"] for step in report["steps"]] == ["list"]


def test_a_first_night_that_finds_nothing_fails_and_writes_nothing(place, capsys, monkeypatch):
    (place / "2026-11-20.txt").unlink()
    code, out, err = night(capsys, place)
    assert (code, out) == (2, "")
    said = f"no pattern of shards matches anything: {place}/2026*.txt; correct shards, or run"
    assert err.count("\n") == 1
    assert f"error: there is no store at {place}/store, and {said}" in err.replace("file://", "")
    # not even a lock or a report, because the command may run in the wrong folder
    assert sorted(path.name for path in place.iterdir()) == ["night.toml"]
    # relative patterns are those of the folder of the command
    config = place / "night.toml"
    config.write_text(config.read_text().replace(f"{place}/2026", "2026"))
    monkeypatch.chdir(place)
    code, out, err = again(capsys, config)
    assert (code, out) == (2, "")
    assert f"matches anything: 2026*.txt (relative to {place}); correct shards" in err
    # a report where others are
    (place / "reports").mkdir()
    (place / "reports" / "night-20260501T031500000000Z.html").write_text("a night before")
    code, out, err = again(capsys, config)
    assert (code, out, "warning" in err) == (2, "", False)
    report, [page] = latest(place), re.findall(r"^page: (.*)$", err, re.MULTILINE)
    assert (report["outcome"], report["exit_code"], report["version"]) == ("failed", 2, None)
    assert "matches anything: 2026*.txt" in report["error"]
    assert "matches anything: 2026*.txt" in Path(page.removeprefix("file://")).read_text()
    # the inbox of a new service is empty, which is no mistake
    for inbox in ("store-inbox/sealed/**/*.jsonl", "mail/sealed/**/*.jsonl"):
        text = config.read_text()
        config.write_text(re.sub("^shards = .*", f'shards = "{inbox}"', text, flags=re.MULTILINE))
        code, out, err = again(capsys, config)
        assert (code, out) == (10, "nothing new; 0 shards counted\n")
        assert "the service has no documents yet" in err
        assert "no store yet: the first nightly run that finds shards creates it" in err


def test_a_later_night_whose_patterns_match_nothing_says_so_first(place, planted, capsys):
    code, _, _ = night(capsys, place)
    assert code == 0
    (place / "2026-11-20.txt").unlink()
    code, out, err = night(capsys, place)
    first = "no pattern of shards matches anything: "
    assert (code, out) == (10, f"{first}nothing new; 0 shards counted; 1 warning\n")
    report, line = latest(place), f"{first}{place}/2026*.txt; check the patterns"
    assert f"  warning: {line}" in err
    assert (report["outcome"], report["warnings"]) == ("nothing new", [line])
    for name in ("latest.html", "index.html"):
        page = (place / "reports" / name).read_text()
        assert f" {line}</" in page
        assert "</span> nothing new, with a warning" in page
    # of several patterns only some match
    (place / "2026-11-21.txt").write_text("\n".join(planted[200:260]))
    config = place / "night.toml"
    text = config.read_text().replace('2026*.txt"', f'2026*.txt", "{place}/b/*.txt"]')
    config.write_text(text.replace("shards = ", "shards = ["))
    code, out, err = again(capsys, config)
    assert (code, out.startswith("no pattern")) == (0, False)
    assert latest(place)["warnings"] == [f"{place}/b/*.txt: matches nothing; check the pattern"]
    # the bar and the outcome of that night agree
    index = (place / "reports" / "index.html").read_text()
    assert 'class="bar low"' in index
    assert index.count("published, with a warning") >= 2
    shown = (place / "reports" / "latest.html").read_text()
    assert shown.count('aria-current="page">This night<') == 1


def test_keys_of_create_that_the_store_was_not_made_with_are_named_once(place, capsys):
    assert night(capsys, place)[0] == 0
    edited = CREATE.replace("max_topics = 4", "max_topics = 3") + (
        'text_column = "body"\npassage_words = 99\nhalves = true\nmin_length = 2\n'
        'languages = ["auto"]\nstop_words = ["harbour"]\n'
    )
    code, out, err = night(capsys, place, create=edited)
    assert (code, out) == (10, "nothing new; 0 shards counted; 1 warning\n")
    [line] = latest(place)["warnings"]
    assert line == (
        "[create] has no effect on a store that exists, and these keys differ from it: "
        'max_topics (3, was 4), text_column ("body", was "text"), '
        'passage_words (99, was not set), stop_words (["harbour"], was []); '
        f"`streaming-moments rebase {place}/store --max-topics 3` counts all again; text_column, "
        "passage_words, stop_words need a new store"
    )
    assert err.count(line) == 1
    # defaults that the file does not write are no edits
    assert night(capsys, place, create="[create]\nmin_documents = 2\n")[1].endswith("counted\n")
    # a default that the file writes is one
    night(capsys, place, create="[create]\nmax_topics = 32\nhalves = false\n")
    [line] = latest(place)["warnings"]
    assert "max_topics (32, was 4), halves (false, was true); `" in line
    assert line.endswith("/store --max-topics 32 --no-halves` counts all again")


def test_the_log_has_one_object_a_step_and_the_window_is_said(place, capsys, monkeypatch):
    monkeypatch.setattr(
        aggregation, "plan_of", lambda *of: dataclasses.replace(plan_of(*of), passes=2)
    )
    (place / "2026-11-21.txt").write_text((place / "2026-11-20.txt").read_text())
    text = configured(place)
    window = (place / "night.toml").read_text().replace("alpha0 = 1", "alpha0 = 1\nwindow_days = 1")
    (place / "night.toml").write_text(window)
    with pytest.raises(SystemExit) as ended:
        main(["nightly", text, "--json"])
    printed = capsys.readouterr()
    assert not ended.value.code
    events = [json.loads(line) for line in printed.err.splitlines()]
    assert [event["event"] for event in events] == [
        "list",
        "create",
        "update",
        "drift",
        "refit",
        "judge",
        "publish",
        "report",
    ]
    assert all(event.keys() >= {"timestamp", "level", "seconds", "store"} for event in events)
    assert "the shards are read 2 times" in events[2]["told"][0]
    store = MomentStore.open(str(place / "store"))
    model = store.load_model("published")
    assert (model.documents, model.since) == (200, "2026-11-21")
    assert store.commit.documents == 400
    # without --json people are told a line a step
    with pytest.raises(SystemExit) as ended:
        main(["nightly", text])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (10, "nothing new; 0 shards counted\n")
    steps = [re.split(r"  +|: ", line)[0] for line in printed.err.splitlines()]
    assert steps == ["find shards", "count new shards", "write the report", "page"]
    assert "counted before 2" in printed.err


def test_more_topics_than_a_new_store_allows_end_the_night_before_it(place, capsys):
    text = configured(place)
    content = (place / "night.toml").read_text().replace("topics = 3", "topics = [2, 5, 40]")
    (place / "night.toml").write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["nightly", text])
    assert ended.value.code == 2
    told = "[refit] topics contains 5, 40, more than [create] max_topics (4); raise max_topics or"
    assert told in capsys.readouterr().err
    assert not (place / "store" / "log").exists()


def test_topics_beyond_the_basis_of_a_store_are_named_before_it_counts(counted):
    content = {"store": counted.url, "shards": "x", "output": "r", "refit": {"topics": [2, 99]}}
    [line] = left_out_topics(config_of(content, "n.toml"), counted)
    assert line.startswith("Left out 99 of [refit] topics, because the basis of the store has ")
    largest = counted.basis.core
    assert line.endswith(f"--max-topics {largest}`, which counts all shards again.")
    with pytest.raises(InvalidInput, match=r"topics is 99, but the basis of the store has \d+ col"):
        list(left_out_topics(config_of(content | {"refit": {"topics": 99}}, "n.toml"), counted))


def test_storage_options_that_no_path_uses_are_named():
    content = {"store": "s", "shards": ["x"], "output": "r", "refit": {"topics": 2}}
    given = content | {"storage_options": {"endpoint_ur": "http://a", "key": "hushhush"}}
    [line] = unused_options(config_of(given, "n.toml"))
    assert line.startswith("[storage_options] endpoint_ur, key has no effect")
    assert "hushhush" not in line
    assert not [*unused_options(config_of(content, "n.toml"))]
    for name in ("store", "output", "shards"):
        assert not [*unused_options(config_of(given | {name: "s3://b/x"}, "n.toml"))]


def test_a_rejection_names_the_command_that_publishes(place, capsys):
    text = configured(place, "[gates]\nmin_documents = 1000000\n")
    with pytest.raises(SystemExit) as ended:
        main(["nightly", text])
    printed = capsys.readouterr()
    assert ended.value.code == 11
    assert "documents: 200, the gate allows at least 1,000,000; 1 shard counted" in printed.out
    [command] = re.findall(r"`streaming-moments (tag .*)`", printed.err)
    [page] = (place / "reports").glob("night-*.html")
    remedy = f"to publish night-v1 anyway, run `streaming-moments {command}`"
    shown = page.read_text()
    assert f"no model is published yet; {remedy}" in shown
    # the table has the value and the bound, and nothing repeats them
    assert "at least 1,000,000</td>" in shown
    assert "the gate allows" not in shown
    run_command(*command.split())
    assert MomentStore.open(str(place / "store")).load_model("published").documents == 200


def test_a_rejected_model_waits_until_someone_decides(place, planted, capsys):
    gates = "[gates]\nmin_documents = 1000000\n"
    code, out, err = night(capsys, place, gates)
    assert (code, latest(place)["undecided"]["model"]) == (11, "night-v1")
    headline = 'id="headline">The new model was rejected, and '
    page = (place / "reports" / "latest.html").read_text()
    assert f"{headline}no model is published yet. Rejected: " in page
    for _ in range(2):
        code, out, err = night(capsys, place, gates)
        assert (code, out) == (10, "nothing new; 0 shards counted\n")
        why = "documents: 200, the gate allows at least 1,000,000"
        assert f", waits for a decision: {why}\nno model is published yet; to publish" in err
        report = latest(place)
        [command] = re.findall(r"run `streaming-moments (.*)`", err)
        assert report["undecided"] == {
            "model": "night-v1",
            "reasons": [why],
            "rejected": report["undecided"]["rejected"],
            "command": f"streaming-moments {command}",
        }
        page = (place / "reports" / "latest.html").read_text()
        assert "Model night-v1, rejected on 20" in page
        assert f"<code>streaming-moments {command}</code>" in page
        assert "waits for a decision" in (place / "reports" / "index.html").read_text()
    run_command(*command.split())
    code, out, err = night(capsys, place, gates)
    assert (code, latest(place)["undecided"]) == (10, None)
    assert "decision" not in err
    # the next one that is rejected stands beside what was published, and is not part of it
    (place / "2026-11-21.txt").write_text("\n".join(planted[200:300]))
    assert night(capsys, place, gates)[0] == 11
    page = (place / "reports" / "latest.html").read_text()
    assert f"{headline}the earlier published one stays. Rejected: " in page
    assert "The hollow dot is the model of this night, which was rejected" in page
    [content] = re.findall(r'id="content">(.*?)</script>', page)
    assert json.loads(content)["shares"]["rejected"]
    assert latest(place)["published"] == "night-v1"
    night(capsys, place, gates)
    page = (place / "reports" / "latest.html").read_text()
    [content] = re.findall(r'id="content">(.*?)</script>', page)
    assert not json.loads(content)["shares"]["rejected"]
    assert "stays: night-v1; to publish night-v" in page
    shown = page[: page.index('id="content"')]
    assert "100 documents counted since then are not in it.</li>" in shown
    assert "refit" not in shown
    # a night as JSON has it, too
    with pytest.raises(SystemExit):
        main(["nightly", str(place / "night.toml"), "--json"])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])["values"]
    assert last["undecided"] == latest(place)["undecided"]


def test_a_rejection_comes_before_bad_shards_in_the_exit_code(place, capsys):
    gates = "[gates]\nmin_documents = 1000000\n"
    assert night(capsys, place, gates)[0] == 11
    (place / "2026-11-21.txt").write_bytes(b"good words\n\xff\xfe\n")
    assert night(capsys, place, gates)[0] == 3, "nothing new but what is bad"
    (place / "2026-11-22.txt").write_text((place / "2026-11-20.txt").read_text())
    code, _, _ = night(capsys, place, gates)
    report = latest(place)
    assert (code, report["exit_code"], report["outcome"]) == (11, 11, "rejected")
    assert [url[-14:] for url, _ in report["bad"]] == ["2026-11-21.txt"]
    assert MomentStore.open(str(place / "store")).commit.tags == {}
    # a window longer than the calendar is all of it
    window = "window_days = 3652059\n[gates]\nmin_documents = 10\n"
    (place / "2026-11-23.txt").write_text((place / "2026-11-20.txt").read_text())
    code, _, _ = night(capsys, place, create=window)
    assert (code, latest(place)["outcome"]) == (3, "published")
    model = MomentStore.open(str(place / "store")).load_model("published")
    assert (model.documents, model.since) == (600, "0001-01-01")


def assert_carried(place, words):
    """The one label is that of a topic of much the same words, in store, report and page."""
    store = MomentStore.open(str(place / "store"))
    [(number, text)] = store.models[store.commit.tags["published"]].labels.items()
    assert text == "ships"
    topics = latest(place)["topics"]
    assert [topic["topic"] for topic in topics if topic["label"] == "ships"] == [number]
    assert len({*topics[number]["relevant"]} & {*words}) > 5


def test_a_rebase_that_is_refused_leaves_the_old_words(place, planted, capsys):
    assert night(capsys, place)[0] == 0
    label(MomentStore.open(str(place / "store")), 1, "ships")
    before = latest(place)["topics"][1]["relevant"]
    (place / "2026-11-20.txt").unlink()
    # a word that all documents have would be left out
    words = [
        f"{text} moon moon moon rover rover rover" if number % 3 == 0 else text
        for number, text in enumerate(planted[200:300])
    ]
    (place / "2026-11-21.txt").write_text("\n".join(words))
    due = '[rebase]\nmax_outside_share = 0.01\nnot_again_for = "0s"\n'
    code, _, _ = night(capsys, place, due)
    report = latest(place)
    assert (code, report["outcome"]) == (0, "published")
    assert "not rebased: 1 of 2 counted shards" in report["rebase_reasons"][-1]
    assert "moon" not in MomentStore.open(str(place / "store")).vocabulary.terms
    assert_carried(place, before)
    (place / "2026-11-22.txt").write_text("\n".join(words[:50]))
    code, _, _ = night(capsys, place, due + "allow_missing = true\n")
    assert code == 0
    assert latest(place)["matching"]["kept"] is not None
    store = MomentStore.open(str(place / "store"))
    assert "moon" in store.vocabulary.terms
    assert store.commit.shards == 2
    assert_carried(place, before)
    # within the days of grace there is no second one
    later = [f"{text} harvest harvest harvest" for text in planted[300:360]]
    (place / "2026-11-23.txt").write_text("\n".join(later))
    late = due.replace("0s", "1d") + "allow_missing = true\n"
    assert night(capsys, place, late)[0] == 0
    assert latest(place)["rebase_reasons"] == []


def test_a_night_polishes_by_the_documents_of_its_window(place, planted, capsys):
    (place / "2026-11-21.txt").write_text("\n".join(planted[200:400]))
    keys = f"window_days = 1\npolish = 2\n{CREATE}"
    assert night(capsys, place, create=keys)[0] == 0
    steps = {step["step"]: step["values"] for step in latest(place)["steps"]}
    assert list(steps)[-4:] == ["refit", "polish", "judge", "publish"]
    assert (steps["polish"]["shards"], steps["polish"]["passes"]) == (1, 2)
    store = MomentStore.open(str(place / "store"))
    model = store.load_model("published")
    assert (model.polishing.documents, model.since) == (200, "2026-11-21")
    assert np.isfinite(model.npmi).all()
    assert store.folder.sizes("polishing") == {}
    # a shard that is gone is left out, as one that cannot be read
    (place / "2026-11-20.txt").unlink()
    (place / "2026-11-22.txt").write_text("\n".join(planted[400:600]))
    assert night(capsys, place, create=f"polish = 1\n{CREATE}")[0] == 0
    model = MomentStore.open(str(place / "store")).load_model("published")
    assert (model.documents, model.polishing.documents, model.polishing.shards) == (600, 400, 2)

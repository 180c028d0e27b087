"""Many models at once against a refit of each, and what the command prints."""

import dataclasses
import json
import re
import sys
import threading

import click
import pytest

from streaming_moments import METHODS, fit_by
from streaming_moments.errors import BoundExceeded, InvalidInput, NotIdentifiable
from streaming_moments.models import halves
from streaming_moments.models.halves import HalfRows, predicting_rounds
from streaming_moments.models.rows import InMemory
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.memory import MEBIBYTE
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.shared_options import TopicNumbers
from streaming_moments.pipelines.jobs import select as module
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit, refit_by
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.model_options import requested
from streaming_moments.quality.coherences import npmi_coherence, umass_coherence
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")


def counted_store(folder, shards, embedded, codocuments, halves=True):
    options = PilotOptions(vocabulary_size=140, core=110, max_topics=5, min_documents=1)
    listed = list_shards([str(shards)])
    made = create(
        str(folder),
        listed,
        ShardFormat(),
        TokenPolicy(),
        options,
        Run(embedded),
        codocuments,
        halves=halves,
    )
    return update(made, listed, Run(embedded)).store


@pytest.fixture(scope="module")
def store(tmp_path_factory, shards, embedded):
    return counted_store(tmp_path_factory.mktemp("select") / "store", shards, embedded, True)


@pytest.fixture(scope="module")
def statistics(store):
    return store.load()


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory, shards, embedded):
    """Without halves."""
    return counted_store(tmp_path_factory.mktemp("whole") / "store", shards, embedded, True, False)


@pytest.fixture(scope="module")
def silent_store(tmp_path_factory, shards, embedded):
    """Without co-document counts."""
    return counted_store(tmp_path_factory.mktemp("silent") / "store", shards, embedded, False)


@pytest.mark.parametrize(
    ("method", "alphas"), [("joint", [0.0, 1.0]), *((name, [1.0]) for name in METHODS[1:])]
)
def test_every_candidate_is_what_its_fit_gives(store, statistics, embedded, method, alphas):
    selection = select(store, [4, 2], alphas, Run(embedded), method, seed=3)
    chosen = [(one.alpha0, one.n_topics) for one in selection.candidates]
    assert chosen == [(alpha0, k) for alpha0 in alphas for k in (2, 4)]
    frequencies, together = statistics.document_frequencies, statistics.codocuments
    for one in selection.candidates:
        model = fit_by(statistics, one.n_topics, one.alpha0, method, seed=3)
        npmi = npmi_coherence(model.topics, frequencies, together, statistics.n_documents, 10)
        assert one.npmi == pytest.approx(npmi.mean())
        for found, number in ((one.umass, 10), (one.umass_20, 20)):
            umass = umass_coherence(model.topics, frequencies, together, number)
            assert found == pytest.approx(umass.mean())
        assert one.captured == pytest.approx(model.captured)
        assert one.smallest_weight == pytest.approx(model.weights.min())
        assert one.seconds > 0
        assert one.refusal == ""
    assert selection.best.npmi == max(one.npmi for one in selection.candidates)


def without_room_for_blocks(store, n_topics, cluster):
    """The cluster with memory for the work, but not to keep a block besides."""
    options = TopicOptions(topics=n_topics, refine=0)
    shape = store.layout, TopicModel, options, cluster.workers, cluster.threads
    kept = plan_refit(*shape, cluster.memory)
    poor = dataclasses.replace(
        cluster, memory=kept.peak_bytes - store.row_blocks * store.layout.block_bytes
    )
    assert kept.keep_blocks
    assert not plan_refit(*shape, poor.memory).keep_blocks
    return poor


def numbers_of(selection):
    return [dataclasses.replace(one, seconds=None) for one in selection.candidates]


def test_the_state_is_read_once_or_as_often_as_little_memory_needs(store, embedded, monkeypatch):
    read, load = [], MomentStore.load_blocks

    def counting(opened, indices, halves):
        read.extend(indices)
        return load(opened, indices, halves)

    monkeypatch.setattr(MomentStore, "load_blocks", counting)
    asked = (2, 4, 5), [0.0, 0.5]
    rich = select(store, *asked, Run(embedded), refine=2)
    assert sorted(read) == list(range(store.row_blocks))
    read.clear()
    run = Run(without_room_for_blocks(store, 5, embedded))
    poor = select(store, *asked, run, refine=2)
    # core; pair counts, with those of each half; for each alpha0 slices, rows of 2 and 4 and of 5;
    # co-document counts
    assert sorted(read) == sorted(9 * [*range(store.row_blocks)])
    for one, two in zip(numbers_of(rich), numbers_of(poor), strict=True):
        assert one == two


@pytest.mark.usefixtures("each_step_a_task")
def test_one_whitening_runs_at_a_time_for_each_holds_the_core_twice(store, embedded, monkeypatch):
    both, met, count = threading.Barrier(2), [], module.positive_eigenvalues

    def watched(core, basis, form):
        try:
            both.wait(timeout=0.5)
            met.append(form)
        except threading.BrokenBarrierError:
            both.reset()
        return count(core, basis, form)

    monkeypatch.setattr(module, "positive_eigenvalues", watched)
    select(store, [2], [0.0, 1.0], Run(embedded))
    assert not met


def test_what_cannot_be_fitted_says_so_and_the_others_are_fitted(store, embedded):
    columns = store.basis.columns
    # so near to the weights of two topics that the second moment keeps few positive eigenvalues
    selection = select(store, [1, 2, columns, columns + 1], [1.0, 1e6], Run(embedded), refine=1)
    by_place = {(one.alpha0, one.n_topics): one for one in selection.candidates}
    assert f"has {selection.limit} positive eigenvalues" in by_place[1.0, columns].refusal
    assert selection.core is None, "a rebase would not raise this limit"
    assert by_place[1.0, 2].npmi is not None
    for alpha0 in (1.0, 1e6):
        refused = by_place[alpha0, columns + 1]
        assert f"{columns + 1} topics are asked for, but the basis has {columns}" in refused.refusal
        larger = f"raise the limit by `rebase --max-topics {columns + 1}`"
        assert refused.refusal.endswith(f"ask for at most {columns}, or {larger}")
        assert refused.npmi is refused.captured is refused.seconds is None
    assert "positive eigenvalues (alpha0 1e+06)" in by_place[1e6, columns].refusal
    with pytest.raises(NotIdentifiable, match=f"{columns + 1} topics are asked for, but the basis"):
        select(store, [columns + 2, columns + 1], [1.0], Run(embedded))
    with pytest.raises(NotIdentifiable, match="positive eigenvalues"):
        select(store, [columns], [1e6], Run(embedded))
    with pytest.raises(BoundExceeded, match="refit of 2 topics needs"):
        select(store, [2, 3], [1.0], Run(dataclasses.replace(embedded, memory=64 * MEBIBYTE)))
    with pytest.raises(InvalidInput, match="0 topics"):
        select(store, [0, 2], [1.0], Run(embedded))
    with pytest.raises(InvalidInput, match="give at least one number of topics"):
        select(store, [], [1.0], Run(embedded))


def test_a_number_that_the_method_cannot_find_goes_with_its_reason(tmp_path, embedded):
    # the third moment knows no "rock" and no "sand": they stand in documents of two words
    texts = 60 * ["hill lake moor"] + 55 * ["rock rock"] + 50 * ["sand sand"]
    lines = [json.dumps({"text": text}) for text in texts]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    options = PilotOptions(vocabulary_size=5, core=5, max_topics=3, min_documents=1)
    listed = list_shards([str(tmp_path / "a.jsonl")])
    policy, folder = TokenPolicy(), str(tmp_path / "store")
    made = create(folder, listed, ShardFormat(), policy, options, Run(embedded))
    selection = select(
        update(made, listed, Run(embedded)).store, (1, 2, 3), [0.0], Run(embedded), "power"
    )
    one, two, three = selection.candidates
    assert one.refusal == ""
    assert "the power method found 1 of 2 components" in two.refusal
    assert "the power method found 1 of 3 components" in three.refusal


def test_the_command_prints_a_table_that_marks_the_best(run, store, tmp_path):
    plot = tmp_path / "k.png"
    arguments = ("select", store.url, "--topics", "2-3,40", "--alpha0", "0.5,1", "--alpha0", "0")
    arguments += ("--refine", "1")
    code, out, err = run(*arguments, "--plot", plot)
    assert (code, err) == (0, "")
    assert out.count("40 topics are asked for, but the basis") == 3
    marked = [line for line in out.splitlines() if line.rstrip().endswith("best")]
    assert len(marked) == 1
    k, alpha0 = (cell.strip() for cell in marked[0].split("│")[:2])
    assert f"refit {store.url} --topics {k} --alpha0 {alpha0}" in out
    assert plot.read_bytes().startswith(b"\x89PNG")
    found = json.loads(run(*arguments, "--json")[1])
    assert (str(found["best"]["n_topics"]), f"{found['best']['alpha0']:g}") == (k, alpha0)
    assert [one["alpha0"] for one in found["candidates"][::3]] == [0.5, 1, 0]
    assert [one["n_topics"] for one in found["candidates"][:3]] == [2, 3, 40]
    assert not store.latest().models


def test_a_selection_takes_the_fewest_topics_within_the_noise(store, embedded):
    selection = select(store, (1, 2, 3, 5), [0.5], Run(embedded))
    scores = [one.held_out.mean for one in selection.candidates]
    within = [
        k
        for k, mean in zip((1, 2, 3, 5), scores, strict=True)
        if mean >= max(scores) - selection.noise
    ]
    assert selection.taken.n_topics == within[0]
    assert [one.n_topics for one in selection.likely] == within
    assert selection.why.startswith(f"Chose {within[0]} topics: ")
    for one in selection.candidates:
        expected = refit(store, one.n_topics, 0.5, Run(embedded)).held_out
        assert one.held_out.mean == pytest.approx(expected.mean, abs=1e-6)


def test_numbers_are_found_where_they_are_auto(run, store):
    # as many as the basis was made for
    asked = ("select", store.url, "--topics", "2,3,5", "--alpha0", "0.5")
    code, out, err = run(*asked)
    assert (code, err) == (0, "")
    taken = next(line for line in out.splitlines() if "chosen" in line).split("│")[0].strip()
    said = next(line for line in out.splitlines() if line.startswith("Chose "))
    assert f"Chose {taken} topics" in said
    told = json.loads(run(*asked, "--json")[1])
    assert told["why"] in out
    assert str(told["taken"]["n_topics"]) == taken
    auto = ("--topics", "predict", "--refine", "auto", "--alpha0", "0.5")
    code, out, err = run("refit", store.url, *auto)
    assert (code, " rounds of refinement" in err) == (0, True)
    rounds = re.search(r"Chose (\d+) rounds", err)[1]
    [name] = set(store.latest().models)
    default = "" if rounds == "10" else f"-r{rounds}"
    assert name == f"k{taken}-a0.5-joint{default}-v{store.version}"
    assert store.latest().load_model(name).refined == int(rounds)


def test_as_many_topics_as_are_told_apart_are_taken_where_they_are_auto(run, store):
    code, out, err = run("refit", store.url, "--alpha0", "0.5", "--name", "apart", "--json")
    assert code == 0
    expected = fit_by(store.load(), "auto", 0.5)
    assert json.loads(out)["n_topics"] == expected.n_topics
    assert f"Chose {expected.n_topics} topics (tried 1 to 5): " in err
    few = ("select", store.url, "--topics", "1,2,3,4,5", "--alpha0", "0.5")
    code, out, _ = run(*few)
    told = json.loads(run(*few, "--json")[1])
    assert told["why_separable"] in out
    assert f"--topics {told['separable']['n_topics']} --alpha0 0.5" in out
    # of two alpha0 no curve tells
    both = json.loads(run(*few[:-1], "0.1,0.5", "--json")[1])
    assert (both["separable"], both["why_separable"]) == (None, "")


def test_the_separable_number_does_not_depend_on_the_smallest_one_compared(store, embedded):
    run = Run(embedded)
    whole, later = (select(store, range(first, 5), [0.5], run, refine=5) for first in (1, 2))
    [one] = [found for found in whole.candidates if found.n_topics == 1]
    assert (whole.single, later.single) == (None, one.held_out)
    assert later.candidates[0].n_topics == 2
    assert later.search.separable == whole.search.separable
    assert select(store, [2], [0.5], run, refine=5).single is None


def test_every_number_may_have_rounds_of_its_own(run, store, embedded, monkeypatch):
    monkeypatch.setattr(halves, "TRIED_ROUNDS", (1, 2, 4))
    rows = InMemory((store.load(),))
    expected = []
    for k in (2, 4):
        start = fit_by(store.load(), k, 0.5, refine=0).pair_topics(store.basis.core)
        expected.append(predicting_rounds(HalfRows.of(rows), start))
    found = select(store, (2, 4), [0.5], Run(embedded), refine="auto")
    assert [one.refined for one in found.candidates] == expected
    # rounds that differ are shown, and the refit that is proposed has them
    monkeypatch.setattr(module, "predicting_rounds_there", fewer_rounds_for_more_topics)
    asked = ("select", store.url, "--topics", "2,4", "--alpha0", "0.5", "--refine", "auto")
    code, out, err = run(*asked)
    [names] = [line for line in out.splitlines() if "┃" in line]
    assert (code, err, "rounds" in names) == (0, "", True)
    rounds = {2: 7, 4: 3}
    for k, many in rounds.items():
        [row] = [line for line in out.splitlines() if line.split("│")[0].strip() == str(k)]
        assert row.split("│")[2].strip() == str(many)
    told = json.loads(run(*asked, "--json")[1])
    assert {one["n_topics"]: one["refined"] for one in told["candidates"]} == rounds
    assert f"--alpha0 0.5 --refine {rounds[told['taken']['n_topics']]}" in out


def test_alpha_is_found_on_a_cluster_too(store, whole_store, embedded):
    options = TopicOptions(topics=3, alpha0=0.1, refine=2, alpha="auto")
    assert options.label == "k3-a0.1-joint-r2-auto"
    expected = fit_by(store.load(), 3, 0.1, refine=2, alpha="auto")
    found = refit_by(store, TopicModel, options, Run(embedded))
    assert (found.alpha0, found.alpha_sum) == (0.1, expected.alpha_sum)
    restored = type(found).from_parts(*found.parts())
    assert (restored.alpha0, restored.alpha_sum) == (found.alpha0, found.alpha_sum)
    with pytest.raises(InvalidInput, match="have no halves.*with alpha .given"):
        refit_by(whole_store, TopicModel, options, Run(embedded))


def test_alpha_is_found_by_the_command(run, store):
    code, out, err = run(
        *("refit", store.url, "--topics", 3, "--alpha0", 0.1, "--refine", 2, "--alpha", "auto"),
        "--json",
    )
    assert code == 0, err
    told = json.loads(out)
    assert told["model"].startswith("k3-a0.1-joint-r2-auto-")
    expected = fit_by(store.load(), 3, 0.1, refine=2, alpha="auto")
    assert told["alpha0"] == 0.1 != told["alpha_sum"] == expected.alpha_sum
    assert MomentStore.open(store.url).commit.message.endswith(", alpha auto")
    both = requested("topics", {"refine": "auto", "alpha": "auto"})
    assert (both.auto, both.options.alpha) == ({"refine": "auto", "topics": "auto"}, "auto")
    assert requested("communities", {"topics": 2, "alpha": "auto"}).options.alpha == "auto"


def fewer_rounds_for_more_topics(halves, start):
    return {1: 1, 2: 7, 4: 3}[halves.rows.value(start).topics.shape[1]]


def test_a_refit_that_names_no_number_finds_it():
    assert requested("topics", {}).auto == {"topics": "auto"}
    assert requested("topics", {"topics": "predict"}).auto == {"topics": "predict"}
    assert requested("topics", {"topics": 3}).auto == {}
    with pytest.raises(click.UsageError, match="model poisson needs --topics"):
        requested("poisson", {})


@pytest.mark.parametrize("option", ["--topics", "--refine"])
def test_without_halves_auto_says_what_to_give(run, whole_store, option):
    given = {"--topics": "3", option: "auto"}
    code, _, err = run("refit", whole_store.url, *sum(given.items(), ()))
    assert code == 2
    assert (
        f"has no halves of the documents, so `auto` cannot choose; give a number to {option}" in err
    )
    if option == "--refine":
        code, _, err = run("select", whole_store.url, "--topics", "2,3", option, "auto")
        assert (code, f"give a number to {option}" in err) == (2, True)
    assert run("refit", whole_store.url, "--topics", "3")[0] == 0
    code, out, _ = run("select", whole_store.url, "--topics", "2,3")
    assert (code, "held out" in out) == (0, False)


def test_auto_is_of_topics_alone(run, store):
    code, _, err = run("refit", store.url, "--model", "poisson", "--topics", "auto")
    assert (code, "--topics auto works only for models topics, " in err) == (2, True)
    code, _, err = run("select", store.url, "--topics", "auto")
    assert code == 2


def test_missing_coherence_is_said_and_the_rest_shown(run, silent_store, tmp_path):
    plot = tmp_path / "k.svg"
    code, out, _ = run("select", silent_store.url, "--topics", "3,2", "--plot", plot)
    assert code == 0
    assert "No coherence: the store has no co-document counts" in out
    assert "NPMI" not in out
    assert plot.read_text().lstrip().startswith("<?xml")
    found = json.loads(run("select", silent_store.url, "--topics", "2-3", "--json")[1])
    assert found["best"] is None
    assert all(one["captured"] > 0 for one in found["candidates"])


def test_worker_processes_find_the_same(run, store):
    arguments = ("select", store.url, "--topics", "2-3", "--method", "als", "--json")
    here, there = (
        json.loads(run(*arguments, *more)[1])["candidates"] for more in ((), ("--workers", "1"))
    )
    for one, two in zip(here, there, strict=True):
        assert one["npmi"] == pytest.approx(two["npmi"])
        assert one["smallest_weight"] == pytest.approx(two["smallest_weight"])


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("5", [5]),
        ("2-5", [2, 3, 4, 5]),
        ("2-12:5", [2, 7, 12]),
        ("2-11:5", [2, 7]),
        ("20, 5,10-12", [5, 10, 11, 12, 20]),
    ],
)
def test_numbers_of_topics_may_be_ranges_steps_and_lists(numbers, expected):
    assert list(TopicNumbers().convert(numbers, None, None)) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--topics", "32-2"), "write for example 2-32, 2-32:5 or 5,10,20"),
        (("--topics", "0-3"), "is not a list of numbers of topics"),
        (("--topics", "2-9:0"), "write for example"),
        (("--topics", "two"), "write for example"),
        (("--topics", "2-1000000000"), "more than 1000 numbers; use steps, such as"),
        (("--topics", "30-40"), "30 topics are asked for, but the basis has"),
        (("--topics", "2", "--alpha0", "-1"), "alpha0 is -1"),
        (("--topics", "2", "--alpha0", "0.1,x"), "write auto, a number such as 0.1, or 0,0.1,1"),
        (("--topics", "2", "--method", "jacobi"), "'joint', 'feature', 'power'"),
        (("--topics", "2", "--seed", "-1"), "--seed"),
        (("--topics", "2", "--plot", "absent/k.png"), "a file in a folder that exists"),
        (("--topics", "2", "--plot", "k.doc"), "end its name with one of"),
        (("--topics", "2", "--memory", "1MB"), "raise --memory"),
        (("--topics", "2", "--version", "99"), "99"),
        ((), "--topics"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(run, store, arguments, expected):
    code, out, err = run("select", store.url, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err


def test_a_plot_without_matplotlib_names_the_extra(run, store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = run("select", store.url, "--topics", "2", "--plot", tmp_path / "k.png")
    assert code == 2
    assert "pip install 'streaming-moments[plot]'" in err
    assert run("select", store.url, "--topics", "2")[0] == 0

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from streaming_moments.pipelines.command_line import plan as command
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.planning import trial
from streaming_moments.storage.documents import share_before
from streaming_moments.storage.formats import START, Position
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.synthetic.corpora import lda_corpus

PROGRAMME = Path(__file__).with_name("planned_run.py")
LETTERS = "abcdefghij"
WORDS, TOPICS = 12_000, 20
# seconds are told by the clock, which takes some
TIMED = "STREAMING_MOMENTS_TIMES" in os.environ
SHARDS = 12 if TIMED else 8
MEMORY = 1200 << 20
STEPS = ("create", "update", "refit")


def spelled(word):
    return "w" + "".join(LETTERS[int(digit)] for digit in str(word))


def texts_of(batch, seed):
    rng = np.random.default_rng(seed)
    names = np.array([spelled(word) for word in range(WORDS)], dtype=object)
    for document in range(batch.documents):
        entries = slice(batch.indptr[document], batch.indptr[document + 1])
        words = np.repeat(names[batch.words[entries]], batch.counts[entries])
        yield " ".join(rng.permutation(words))


def halved(text):
    middle = text.index(" ", len(text) // 2)
    return text[:middle], text[middle + 1 :]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Shards of 8000 documents, of which a plan reads a part."""
    folder = tmp_path_factory.mktemp("planned")
    batch = lda_corpus(4000, n_words=WORDS, n_topics=TOPICS, mean_length=120, seed=3).batch
    texts = np.array(list(texts_of(batch, 0)), dtype=object)
    rng = np.random.default_rng(1)
    for shard in range(SHARDS):
        # the halves of two documents, crossed: new documents, and new pairs of words
        crossed = zip(texts[rng.permutation(texts.size)], texts, strict=True)
        halves = [(halved(one), halved(other)) for one, other in crossed]
        lines = [f"{one[0]} {other[1]}" for one, other in halves]
        lines += [f"{other[0]} {one[1]}" for one, other in halves]
        pq.write_table(pa.table({"text": lines}), folder / f"{shard:02d}.parquet")
    return folder


def comparison(corpus, place):
    """A real run and its plan, in a fresh process."""
    ran = subprocess.run(
        [sys.executable, PROGRAMME, corpus, place, str(TOPICS), str(MEMORY)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def compared(corpus, tmp_path_factory):
    return comparison(corpus, tmp_path_factory.mktemp("real") / "store")


def furthest(compared):
    """How far the plan of a step is off, as a factor."""
    real, planned = compared["real"]["seconds"], compared["planned"]["seconds"]
    ratios = [planned[step] / real[step] for step in STEPS]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


@pytest.mark.skipif(not TIMED, reason="needs a quiet machine: make times")
def test_a_real_run_takes_the_time_that_was_planned(corpus, compared, tmp_path):
    runs = [compared]
    while furthest(runs[-1]) >= 1.5 and len(runs) < 3:
        runs.append(comparison(corpus, tmp_path / f"store-{len(runs)}"))
    print([[run[which]["seconds"] for which in ("real", "planned")] for run in runs])
    assert furthest(runs[-1]) < 1.5


# one test of both: processes that share the tests would each make a run for theirs
@pytest.mark.long
def test_a_real_run_holds_no_more_and_leaves_the_bytes_that_were_planned(compared):
    real, planned = compared["real"], compared["planned"]
    assert planned["peak"] <= MEMORY
    assert real["peak"] <= 1.1 * planned["peak"]
    assert planned["segments"] == real["segments"]
    assert planned["words"] == pytest.approx(real["words"], rel=0.02)
    assert planned["tokens"] == pytest.approx(real["tokens"], rel=0.1)
    assert 1 / 1.1 < planned["disk"] / real["disk"] < 1.1, compared


def plan(*arguments):
    return CliRunner().invoke(cli, ["plan", *map(str, arguments)], catch_exceptions=False)


def test_the_answer_comes_first_and_details_if_asked_for(shards, monkeypatch):
    arguments = (shards, "--min-documents", 2, "--max-topics", 3)
    measured = []
    tried = command.try_out_any

    def once(*given):
        measured.extend([] if measured else [tried(*given)])
        return measured[0]

    monkeypatch.setattr(command, "try_out_any", once)
    ran = plan(*arguments, "--verbose")
    assert ran.exit_code == 0
    answer, *details = ran.stdout.split("\n\n")
    lines = answer.splitlines()
    names = ("fits here", "recommended", "time", "memory", "disk", "corpus")
    assert [line.split("  ")[0].strip() for line in lines] == [*names]
    assert lines[0].split(None, 2)[2].startswith("yes, this machine has")
    assert "1 worker of" in lines[1]
    assert all(step in lines[2] for step in STEPS)
    assert "6 shards" in lines[5]
    parts = ("store on disk", "memory of a worker", "workers of", "reads the shards once")
    for part in (*parts, "receiving 600 MiB a second", "1,000"):
        assert part in "\n\n".join(details)
    # of a machine without that memory
    monkeypatch.setattr(command, "MEMORY_LIMIT", 512 << 20)
    ran = plan(*arguments)
    assert len(ran.stdout.splitlines()) == len(names)
    assert "no, this machine has 512 MiB of memory; --memory 307MiB plans for it" in ran.stdout
    assert "--verbose prints the details" in ran.stderr
    # of few core words, unless a number of topics is given
    monkeypatch.setattr(command, "fewer_topics", lambda core: f"only {core} core words")
    assert "core words" not in ran.stderr
    assert f"only {measured[0][0].basis.core} core words\n" in plan(*arguments[:3]).stderr


def test_the_command_prints_one_json_object(shards):
    ran = plan(
        shards,
        *("--max-topics", 3, "--workers", 1, "--workers", 4, "--memory", "2GB"),
        *("--network", "125MB", "--json"),
    )
    made = json.loads(ran.stdout)
    assert [one["workers"] for one in made["clusters"]] == [1, 4]
    assert (made["network"], made["passes"]) == (125 * 10**6, 1)
    alone, several = made["updates"]
    assert (alone["workers"], several["workers"]) == (1, 4)
    assert alone["received_bytes"] == 0
    assert several["received_bytes"] == pytest.approx(0.75 * made["state_bytes"], rel=0.05)
    assert several["documents_per_second"] > 2 * alone["documents_per_second"]
    assert made["corpus"]["shards"] == 6
    assert made["documents"] == pytest.approx(900, rel=0.01)
    assert made["memory"]["budget"] == 2 * 10**9
    assert made["memory"]["peak"] <= made["memory"]["budget"]
    assert made["memory"]["budget"] <= 0.6 * made["memory"]["limit"] < 2.001e9
    assert made["recommended"]["total"] > 0
    assert made["fits"] == (made["memory"]["limit"] <= made["machine_bytes"])


def test_a_plan_leaves_nothing_behind(shards, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    # kernels are compiled before a step of a fit is timed, or the first plan would be too slow
    steps = []
    for name in ("_compile_fits", "_swept"):
        own = getattr(trial, name)
        monkeypatch.setattr(trial, name, lambda *given, own=own: steps.append(own) or own(*given))
    assert plan(shards, "--max-topics", 3).exit_code == 0
    assert list(tmp_path.iterdir()) == []
    assert [one.__name__ for one in steps] == ["_compile_fits", "_swept"]


def test_a_budget_that_holds_nothing_is_refused(shards):
    ran = CliRunner().invoke(cli, ["plan", str(shards), "--memory", "100MB"])
    assert "needs" in str(ran.exception)
    assert "--memory" in str(ran.exception)


@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_the_share_of_a_text_shard_before_a_place_is_known(tmp_path, suffix):
    rng = np.random.default_rng(0)
    lines = [" ".join(map(spelled, rng.integers(0, WORDS, 50))) for _ in range(4000)]
    content = ("\n".join(lines) + "\n").encode()
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    [shard] = list_shards([str(path)])
    offset = sum(len(line) + 1 for line in lines[:1000])
    form = ShardFormat()
    assert share_before(shard, form, Position(1000, offset), None) == pytest.approx(0.25, abs=0.06)
    assert share_before(shard, form, START, None) == 0


def test_the_share_of_a_folder_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a.text").write_text("law" * 100)
    (tmp_path / "b.text").write_text("sea" * 300)
    [shard] = list_shards([str(tmp_path)], kind="directory")
    assert share_before(shard, ShardFormat("directory"), Position(1)) == 0.25

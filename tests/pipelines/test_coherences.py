"""A coherence is one file and one line: one that is planted appears wherever others do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_runs import run_command

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.quality.coherences import COHERENCES
from streaming_moments.storage.store.store import MomentStore

SCRIPT = Path(__file__).parent / "planted_coherence.py"


@pytest.fixture(scope="module")
def place(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coherences")
    (folder / "texts.txt").write_text("\n".join(planted[:300]))
    return folder


@pytest.fixture(scope="module")
def shown(place):
    ran = subprocess.run(
        [sys.executable, SCRIPT, place],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def known(values):
    return all(0 < value < 1 for value in values)


def test_commands_print_a_planted_coherence(shown):
    assert "Both" in shown["topics"]
    assert "mean Both" in shown["topics"]
    assert "Both 10" in shown["select"]
    assert "Both 15" in shown["select"]
    assert "mean Both, 15 words" in shown["plot"]


def test_json_holds_a_planted_coherence(shown):
    for told in (shown["refit"], shown["model"]):
        assert known(topic["coherences"]["both"] for topic in told["topics"])
    assert known([shown["model"]["both"]])
    found = [one["coherences"] for one in shown["selection"]["candidates"]]
    assert all(set(one) == {"both", "both_15"} and known(one.values()) for one in found)


def test_nights_report_and_gate_a_planted_coherence(shown):
    report = shown["report"]
    assert known(one["coherences"]["both"] for one in report["candidates"])
    assert [one["name"] for one in report["gates"]][:1] == ["drop of Both"]
    steps = {one["step"]: one["values"] for one in report["steps"]}
    assert known([steps["refit"]["both"], steps["polish"]["both"]])
    assert known(topic["coherences"]["both"] for topic in report["topics"])
    assert shown["compared"] == [one["coherences"] for one in report["candidates"]]


def test_pages_show_a_planted_coherence(shown):
    assert 'data-coherence="both"' in shown["page"]
    assert "Mean Both of the topics" in shown["page"]
    assert '"key": "both"' in shown["page"]
    assert known([float(shown["facts"]["coherence, Both"])])


def test_python_shows_a_planted_coherence(shown):
    assert shown["frame"] == ["name", "share", "bar", "npmi", "umass", "both", "words"]
    assert "<th>Both</th>" in shown["html"]
    assert "<th>both</th>" in shown["bare"]


def test_a_model_keeps_a_coherence_that_is_gone_from_the_registry(shown, place, capsys):
    assert list(COHERENCES) == ["npmi", "umass"]
    model = MomentStore.open(str(place / "store")).load_any_model("mine")
    expected = [topic["coherences"]["both"] for topic in shown["refit"]["topics"]]
    assert model.coherences["both"].tolist() == expected
    moved = model.reordered(np.array([2, 0, 1]))
    assert moved.coherences["both"].tolist() == [expected[2], *expected[:2]]
    again = TopicModel.from_parts(*model.parts())
    assert again.coherences["both"].tolist() == expected
    run_command("topics", str(place / "store"), "--model", "mine")
    assert "Both" not in capsys.readouterr().out


def test_pages_and_json_without_others_are_as_they_were(place, shown, capsys):
    with pytest.raises(SystemExit):
        main(["refit", str(place / "store"), "--topics", "2", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert "coherences" not in told["topics"][0]
    assert {"npmi", "umass"} <= set(told["topics"][0])

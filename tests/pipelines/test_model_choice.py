"""choose: a row for each model, commands that run, and a page that says the same."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_scripts import commands_of

import streaming_moments
from streaming_moments.models.registry import ABSENT, MODELS
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.model_choice import CHOICES, DATA, page_table
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage import MomentStore

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "guides" / "choosing_a_model.md").read_text(encoding="utf-8")
EACH = pytest.mark.parametrize("choice", CHOICES, ids=lambda one: f"{one.data}-{one.want}")
ROWS = 240


def drawn(*names):
    return np.random.default_rng(0).choice(names, ROWS).tolist()


def tables():
    """Small data by the folder that the commands name."""
    rng = np.random.default_rng(0)
    words = [f"{one}{other}" for one in "bcdfgk" for other in ("ab", "el", "or", "um", "ist", "ok")]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(ROWS)]
    ends = rng.integers(0, 40, (2, 800)).astype(str)
    return {
        "documents": {"text": texts},
        "sequences": {"steps": rng.integers(0, 5, (ROWS, 9)).tolist()},
        "rows": {"embedding": rng.normal(size=(ROWS, 12)).tolist()},
        "edges": {"source": ends[0].tolist(), "target": ends[1].tolist()},
        "tables": {
            "colour": drawn("red", "blue"),
            "size": drawn("small", "large"),
            "price": drawn("low", "high"),
        },
        "sets": {"items": [rng.choice(words, 4, replace=False).tolist() for _ in range(ROWS)]},
        "records": {
            "title": texts,
            "author": drawn("ann", "bob", "eve"),
            "year": drawn("1999", "2000"),
        },
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("choice")
    for name, columns in tables().items():
        (place / name).mkdir()
        pq.write_table(pa.table(columns), place / name / "1.parquet")
    return place


def test_every_model_has_a_row():
    assert {one.model for one in CHOICES} == {*MODELS}, "add a row to pipelines/model_choice.py"
    assert len(CHOICES) == len(MODELS)
    assert {one.data for one in CHOICES} == {*DATA}
    assert len({(one.data, one.want) for one in CHOICES}) == len(CHOICES)


@EACH
def test_the_estimator_is_that_of_the_model(choice):
    assert bool(choice.estimator) == (choice.model not in ABSENT["estimator"])
    if choice.estimator:
        name = choice.estimator.partition("(")[0]
        assert eval(choice.estimator, {name: getattr(streaming_moments, name)})


@EACH
def test_the_commands_make_a_store_of_the_kind_of_the_model(run, choice, folder, monkeypatch):
    monkeypatch.chdir(folder)
    commands = commands_of("".join(f"{line}\n" for line in choice.commands))
    [create] = [command for command in commands if command[0] == "create"]
    if choice.before and not (folder / "neighbours").exists():
        assert run(*commands[0])[0] == 0
    store = folder / f"{choice.data}-{choice.want}"
    code, _, err = run("create", store, *create[2:])
    assert (code, err) == (0, ""), err
    assert MomentStore.open(str(store)).kind == MODELS[choice.model].kind
    assert MODELS[choice.model].kind in KINDS
    for name, *arguments in commands:
        cli.get_command(None, name).make_context(name, arguments, resilient_parsing=False)
    refit = commands[-1]
    assert ("--model" in refit) == (choice.model != "topics")
    assert choice.model == "topics" or refit[refit.index("--model") + 1] == choice.model


@EACH
def test_the_guide_is_there_and_the_command_prints_it(run, choice):
    assert (DOCS / f"{choice.guide}.md").exists()
    code, out, err = run("choose", "--data", choice.data, "--want", choice.want)
    assert (code, err) == (0, "")
    assert out.startswith(f"Model {choice.model}: finds {choice.answer}.\n")
    assert all(f"  {command}\n" in out for command in choice.commands)
    found = json.loads(run("choose", "--data", choice.data, "--want", choice.want, "--json")[1])
    assert (found["model"], found["commands"]) == (choice.model, [*choice.commands])


def test_the_page_has_the_table_and_the_output_of_its_command(run):
    assert page_table() in PAGE
    [shown] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    [command] = commands_of(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0])
    assert run(*command)[1] == shown


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self):
        return True


def test_on_a_terminal_it_asks_what_is_not_given(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Typed("graph\nneighbours\n"))
    code, out, _ = run("choose")
    assert code == 0
    assert "What is your data?" in out
    assert "Model communities: " in out
    # one answer needs no question
    monkeypatch.setattr(sys, "stdin", Typed("table\n"))
    code, out, _ = run("choose")
    assert (code, "Model latent_tree: " in out, "What do you want" in out) == (0, True, False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "What is your data? Give --data with one of: text, sequences, "),
        (("--data", "text"), "What do you want to find? Give --want with one of: topics, groups"),
        (("--data", "text", "--want", "states"), "no model finds 'states' in text; give --want"),
        (("--data", "sound"), "'sound' is not one of 'text', "),
    ],
)
def test_elsewhere_it_names_what_it_needs(run, monkeypatch, arguments, expected):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, out, err = run("choose", *arguments)
    assert (code, out) == (2, "")
    assert expected in err

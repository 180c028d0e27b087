"""Help of commands: sections, plain ranges, examples that parse, completion; quiet and verbose."""

import re
import shlex

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from command_runs import COMMANDS, run_command

from streaming_moments.pipelines.cluster.progress import step_progress
from streaming_moments.pipelines.cluster.progress_lines import ProgressLines
from streaming_moments.pipelines.command_help import OPTIONS, GroupedCommand
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.command_line.shared_options import Session, running
from streaming_moments.pipelines.terminal import detail, note, say

MOST_TOGETHER = 13  # options under one heading


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_parse(name):
    command, context = COMMANDS[name]
    assert 1 <= len(command.examples) <= 3
    for line in command.examples:
        assert line.startswith(f"streaming-moments {name}")
        _, *given = shlex.split(line)
        parsed = cli
        while isinstance(parsed, click.Group):
            called, *given = given
            parsed = parsed.get_command(context, called)
        assert parsed.name == command.name
        parsed.make_context(called, given, parent=context.parent)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_sections_and_no_bounds_of_integers(name):
    command, context = COMMANDS[name]
    sections = command.sections(context)
    shown = command.get_help(context)
    assert "RANGE" not in shown
    assert not re.search(r"\d{16}|<=x|\bOf \w+: ", shown)
    assert max(map(len, sections.values())) <= MOST_TOGETHER
    flags = {flag for records in sections.values() for flag, _ in records}
    for option in command.params:
        if isinstance(option, click.Option):
            assert any(option.opts[0] in flag for flag in flags), option.name


def test_options_of_a_kind_stand_under_its_heading():
    command, context = COMMANDS["create"]
    sections = command.sections(context)
    assert OPTIONS not in sections
    assert [flag for flag, _ in sections["Of --kind edges"]] == [
        "--columns NAMES",
        "--sketch-columns NUMBER",
        "--directed / --no-directed",
    ]
    command, context = COMMANDS["refit"]
    [(flag, told)] = command.sections(context)["Of --model hmm"]
    assert flag.startswith("--refine")
    assert told.endswith("[200]")


def completions(*words):
    *before, last = words
    found = ShellComplete(cli, {}, "streaming-moments", "_UNUSED").get_completions(before, last)
    return [one.value for one in found]


def test_the_shell_completes_commands_options_and_choices(monkeypatch, capsys):
    assert completions("re") == ["rebase", "refit", "rename"]
    assert completions("create", "store", "a.txt", "--len") == ["--length-weights"]
    assert completions("create", "store", "a.txt", "--kind", "v") == ["views", "vectors"]
    for shell, begins in (("zsh", "#compdef"), ("bash", "_streaming_moments_completion()")):
        monkeypatch.setenv("_STREAMING_MOMENTS_COMPLETE", f"{shell}_source")
        run_command()
        assert begins in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("create store a.txt --language ita", ["italian"]),
        ("create store a.txt --tokeniser le", ["lemmas:"]),
        ("create store a.txt --phrases ''", ["2", "3"]),
        ("create store a.txt --date-pattern n", ["none"]),
        ("refit store --topics ''", ["auto", "predict"]),
        ("refit store --model gau", ["gaussian_mixture"]),
        ("select store --alpha0 a", ["auto"]),
        ("polish store --passes a", ["auto"]),
        ("topics store --over-time w", ["week"]),
        ("transform store a --method v", ["viterbi"]),
        ("choose --data ve", ["vectors"]),
        ("token add tokens.json me --role w", ["writer"]),
    ],
)
def test_the_shell_completes_known_values(words, values):
    assert completions(*shlex.split(words)) == values


@click.command(cls=GroupedCommand)
def reporting():
    note("a note")
    detail("a detail")
    say("a result")
    with running(Session()) as run:
        run.tell("a line of a job")
        run.detail("a detail of a job")


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ([], ["a note", "a line of a job"]),
        (["--quiet"], []),
        (["-v"], ["a note", "a detail", "a line of a job", "a detail of a job"]),
    ],
)
def test_quiet_leaves_the_result_and_verbose_adds_details(options, printed):
    ran = CliRunner().invoke(reporting, options)
    assert ran.stdout == "a result\n"
    assert ran.stderr.splitlines() == printed


def test_progress_is_a_line_a_minute_where_nobody_watches():
    with step_progress(say) as progress:
        assert isinstance(progress, ProgressLines)
    seconds, lines = iter([0.0, 0.0, 59.0, 61.0, 62.0, 130.0, 131.0, 200.0, 201.0, 270.0]), []
    progress = ProgressLines(lines.append, clock=lambda: next(seconds))
    for done in (0, 1, 2, 3, 4, 5):
        progress.advance("counting", done, 5)
    for done in (0, 1, 2):
        progress.advance("short", done, 4)
    assert lines == [
        "counting: 2 of 5 (40%) after 1 min, about 1.5 min left",
        "counting: 4 of 5 (80%) after 2.2 min, about 32 s left",
        "short: 2 of 4 (50%) after 1.2 min, about 1.2 min left",
    ]

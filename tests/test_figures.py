"""Figures and claims of the papers, beside what they are made of."""

import re
from pathlib import Path

import click
import pytest

from streaming_moments.pipelines.command_line.every_command import cli

ROOT = Path(__file__).parent.parent
CAMPAIGNS = (ROOT / "tests" / "faults" / "README.md").read_text()
ROW = re.compile(r"^\| (?P<what>.*) \| (?P<tried>[\d,]+) \| (?P<held>[\d,]+) \|$", re.MULTILINE)


def number(text):
    return int(text.replace(",", ""))


def test_the_faults_that_were_tried_are_those_of_the_table():
    rows = [row.groupdict() for row in ROW.finditer(CAMPAIGNS)]
    table = CAMPAIGNS.split("| --- | ---: | ---: |\n")[1].split("\n\n")[0]
    assert len(rows) == len(table.splitlines()) > 30, "each row of the table is read"
    assert [row["what"] for row in rows if row["tried"] != row["held"]] == []
    tried = sum(number(row["tried"]) for row in rows)
    [said] = re.findall(r"made to fail more than ([\d,]+) times", (ROOT / "README.md").read_text())
    assert said == f"{tried // 1000 * 1000:,}", f"the table adds up to {tried:,}"


def without_json():
    """Commands, and those within them, that have no `--json`."""
    context, found = click.Context(cli), set()

    def walk(name, command):
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                walk(f"{name} {inner}", command.get_command(context, inner))
        elif not any("--json" in param.opts for param in command.params):
            found.add(name)

    for name in cli.list_commands(context):
        walk(name, cli.get_command(context, name))
    return found


def test_the_commands_without_json_are_those_that_the_page_names():
    page = " ".join((ROOT / "docs" / "guides" / "command_line.md").read_text().split())
    [claim] = re.findall(r"All commands except (.*?) have `--json`", page)
    assert without_json() == {*re.findall(r"`(\w+)`", claim)}


PAGES = [one.relative_to(ROOT).as_posix() for one in sorted((ROOT / "docs").glob("*/**/*.md"))]
PAGES = [one for one in PAGES if "generated" not in one]
# of `dask worker`
OF_OTHERS = {"--nthreads", "--memory-limit"}


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_options_that_pages_name_are_there(page):
    context, known = click.Context(cli), {*OF_OTHERS}

    def walk(command):
        for param in command.get_params(context):
            known.update((*param.opts, *param.secondary_opts))
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                walk(command.get_command(context, name))

    walk(cli)
    # blocks show other programs as well; those of commands run in tests
    text = re.sub(r"```(?:text|sh|bash).*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    text = re.sub(
        r"`(?:pip|dask|pipx|docker|uv|podman|kubectl|journalctl|systemctl) [^`]*`", "", text
    )
    named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z0-9]", text)}
    assert named - known == set()

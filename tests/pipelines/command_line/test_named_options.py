"""Options that messages name are options of a command, and a message says of which."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import click
import pytest

from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.printing.remedies import remedy

ROOT = Path(__file__).resolve().parents[3]
FIELD = re.compile(r"\{(option|create|update|forget|refit|rebase|transform)\.[a-z_]+[:}]")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z0-9]")
# of `dask worker`, of Prometheus' node exporter, and of systemctl
OTHERS = {"--fail-with-body", "--no-deps", "--memory-limit", "--collector", "--user", "--now"}
SHARED = 9  # commands that have an option which a message may name without one of them


def owners():
    """Names of the commands that have each option."""
    context, found = click.Context(cli), defaultdict(set)

    def walk(name, command):
        for param in command.params:
            for option in (*param.opts, *param.secondary_opts):
                found[option].add(name)
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                walk(f"{name} {inner}", command.get_command(context, inner))

    for name in cli.list_commands(context):
        walk(name, cli.get_command(context, name))
    for option in ("--help", "--version", "--debug"):
        found[option].add("streaming-moments")
    return found


def messages(folder):
    """Place and text of each text of the sources but docstrings; values of f-strings are {}."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        skipped = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
                text = "".join(
                    part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # texts of remedies name options by fields, whichever door says them
                text = str(remedy(node.value)) if FIELD.search(node.value) else node.value
            else:
                continue
            if OPTION.search(text):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


FOLDERS = ("streaming_moments", "storage", "pipelines")


@pytest.fixture(scope="module")
def known():
    return owners()


@pytest.fixture(scope="module")
def named():
    """Every message with an option, once."""
    return [found for folder in FOLDERS for found in messages(folder)]


def test_options_that_messages_name_are_there(known, named):
    assert len(named) > 100
    unknown = [
        (place, option)
        for place, text in named
        for option in OPTION.findall(text)
        if option not in known and option not in OTHERS | {"--no"}
    ]
    assert unknown == []


def test_a_command_that_is_named_with_an_option_has_it(known, named):
    called = re.compile(r"`(?:streaming-moments )?((?:token )?[a-z]+)( [^`]*--[^`]*)`")
    wrong = [
        (place, command, option)
        for place, text in named
        for command, rest in called.findall(text)
        for option in OPTION.findall(rest)
        if command not in known[option]
    ]
    assert wrong == []


def test_what_any_reader_may_say_names_the_command_of_an_option(known, named):
    """`update` is to name no option that `create` alone has as if it were its own."""
    everywhere = {option for option, own in known.items() if len(own) >= SHARED}
    assert "--memory" in everywhere
    below = ("storage/", "streaming_moments/", "pipelines/aggregation/", "pipelines/cluster/")
    bare = [
        (place, option, text)
        for place, text in named
        for option in OPTION.findall(text)
        if place.startswith(below)
        and option not in everywhere | OTHERS
        and not any(re.search(rf"\b{own}\b", text) for own in known[option])
    ]
    assert bare == []

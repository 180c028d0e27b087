"""The command that finds a model for some data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict

import click

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_help import GroupedCommand, OneOf
from streaming_moments.pipelines.command_line.shared_options import json_option, print_json
from streaming_moments.pipelines.model_choice import CHOICES, DATA, Choice, choice_of, wants_of
from streaming_moments.pipelines.terminal import say

_WANTS = tuple(dict.fromkeys(one.want for one in CHOICES))


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments choose",
        "streaming-moments choose --data text --want topics",
        "streaming-moments choose --data vectors --want clusters --json",
    ),
)
@click.option("--data", type=OneOf([*DATA]), metavar="DATA", help=f"Your data: {', '.join(DATA)}.")
@click.option(
    "--want",
    type=OneOf(_WANTS),
    metavar="ANSWER",
    help=f"What to find: {', '.join(_WANTS)}.",
)
@json_option
def choose(data: str | None, want: str | None, json_output: bool) -> None:
    """Find a model for your data and question, and print its commands.

    On a terminal, the command asks for options that are not given.
    """
    data = data or _asked("What is your data?", DATA, "--data")
    answers = {name: one.answer for name, one in wants_of(data).items()}
    if want is None:
        only = next(iter(answers)) if len(answers) == 1 else None
        want = only or _asked("What do you want to find?", answers, "--want")
    found = choice_of(data, want)
    if json_output:
        print_json({**asdict(found), "commands": [*found.commands]})
    else:
        say(*_lines(found))


def _asked(question: str, answers: Mapping[str, str], flag: str) -> str:
    """Ask the user and return the answer; raise InvalidInput if there is no terminal."""
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Give {flag} with one of: {', '.join(answers)}")
    say(question, *(f"  {name:12} {told}" for name, told in answers.items()))
    answer: str = click.prompt(flag.removeprefix("--"), type=OneOf([*answers]))
    return answer


def _lines(found: Choice) -> list[str]:
    in_memory = f"In memory: streaming_moments.{found.estimator}" if found.estimator else ""
    return [
        f"Model {found.model}: finds {found.answer}.",
        "Commands, with your own names of files and columns:",
        *(f"  {command}" for command in found.commands),
        *filter(None, [in_memory]),
        f"Guide: docs/{found.guide}.md",
    ]

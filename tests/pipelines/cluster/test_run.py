"""Run, and the options that are declared once."""

import logging
import threading
from dataclasses import dataclass, fields
from functools import partial

import click
import pytest
from click.testing import CliRunner

from streaming_moments.models.base import option
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.progress import Silent
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import run_bounded
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.option_types import declared_options
from streaming_moments.pipelines.quantities import Count, PositiveShare

DECLARED = (*fields(CountingOptions), *fields(PilotOptions))


def test_a_run_does_not_show_what_it_logs_in_with(embedded):
    run = Run(embedded, storage_options={"key": "hidden-71c9"})
    assert run.storage_options == {"key": "hidden-71c9"}
    assert "hidden-71c9" not in repr(run)


@pytest.mark.parametrize("one", DECLARED, ids=lambda one: one.name)
def test_command_line_and_configuration_have_the_defaults_that_are_declared(one):
    command = cli.get_command(click.Context(cli), "create")
    asked = {param.name: param for param in command.params}[one.name]
    assert asked.help == one.metadata["help"]
    default = asked.get_default(click.Context(command))
    assert (tuple(default) if isinstance(one.default, tuple) else default) == one.default
    content = {"store": "s", "shards": "a", "output": "r", "refit": {"topics": 5}, "create": {}}
    assert getattr(config_of(content, "n.toml").create, one.name) == one.default


@dataclass(frozen=True)
class Wanted:
    """Options of one command."""

    share: PositiveShare = option("How much.", 0.5)
    ends: Count | None = option("How many.", None, metavar="ENDS")
    colours: tuple[str, ...] = option("Which.", (), flag="--colour", choices=("red", "blue"))
    warm: bool = option("Whether.", True)
    hidden: int = option("Never asked.", 7)


def told(*arguments, **how):
    found = []

    @click.command()
    @declared_options(Wanted, "wanted", without=("hidden",), **how)
    def command(wanted):
        found.append(wanted)

    ran = CliRunner().invoke(command, arguments)
    return found[0] if found else ran.output


def test_options_are_made_of_the_fields():
    assert told() == Wanted()
    given = ("--share", "1", "--ends", "3", "--colour", "red", "--colour", "blue", "--no-warm")
    assert told(*given) == Wanted(1.0, 3, ("red", "blue"), False)
    assert "--share SHARE        How much.  [default: 0.5]" in told("--help")
    assert "above 0 and at most 1" in told("--share", "0")
    assert "--ends ENDS" in told("--help")
    for arguments in (("--share", "0"), ("--ends", "0"), ("--colour", "green"), ("--hidden", "1")):
        assert "Error" in told(*arguments)


def test_changes_are_what_was_given():
    assert told("--ends", "3", changes=True) == {"ends": 3}
    assert told(changes=True) == {}
    assert "How much [unchanged]." in told("--help", changes=True)


def test_tracebacks_of_dask_are_one_line_and_details(capfd):
    told, details, both = [], [], threading.Event()
    loops = logging.getLogger("tornado.application")
    before = loops.handlers[:], loops.propagate

    def detail(line):
        details.append(line)
        if len(details) == 2:
            both.set()

    def cut_off():
        raise OSError("cut off")

    with connect(on_wait=told.append, detail=detail) as cluster:
        for _ in range(2):
            # a real connection that fails leaves a future, whose traceback comes in a later test
            cluster.client.loop.add_callback(cut_off)
        assert both.wait(60)
    assert (loops.handlers, loops.propagate) == before
    assert [line.partition(",")[0] for line in told] == ["Dask lost a connection"]
    assert len(details) == 2
    assert "Traceback" in details[0]
    assert "cut off" in details[0]
    assert "Traceback" not in "".join(capfd.readouterr())


def test_dashboards_count_tasks_by_the_words_of_their_steps(embedded):
    run_bounded(embedded, partial(max, 1), [(2,), (3,)], 2, Silent(), "counting stars, pass 1 of 2")
    seen = embedded.client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.task_prefixes])
    assert "counting-stars" in seen

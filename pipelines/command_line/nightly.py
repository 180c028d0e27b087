"""The command that runs every night."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from streaming_moments.errors import InvalidInput, StreamingMomentsError, Unfinished
from streaming_moments.pipelines.command_help import PATTERN, GroupedCommand, quoted_pattern
from streaming_moments.pipelines.command_line.new_folders.night import UNIT, write_night_folder
from streaming_moments.pipelines.command_line.new_folders.writing import files_of
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    running,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.nightly.night import nightly as run_nightly
from streaming_moments.pipelines.nightly.plain_words import WIDEST, in_words, of_nights
from streaming_moments.pipelines.nightly.report import NO_STORE_YET, NightReport
from streaming_moments.pipelines.nightly.steps.found_shards import without_match
from streaming_moments.pipelines.reports.page import StepReport
from streaming_moments.pipelines.reports.status import Status, warnings_of
from streaming_moments.pipelines.terminal import confirm, event_logger, note, say, tell
from streaming_moments.printing.plural import of_number


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments nightly night.toml",
        "streaming-moments nightly --init nights",
        "streaming-moments nightly --init nights --shards 's3://corpus/shards/*.parquet' "
        "--results s3://corpus",
    ),
)
@click.argument("config", type=click.Path(dir_okay=False), required=False)
@click.option("--json", "json_output", is_flag=True, help="Print one JSON object for each step.")
@click.option(
    "--init",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a new folder with configuration and schedule; run nothing.",
)
@click.option(
    "--shards",
    multiple=True,
    metavar=PATTERN,
    help="With --init: pattern of the shards, quoted; repeatable [example documents].",
)
@click.option(
    "--results",
    metavar="FOLDER",
    help="With --init: folder or URL for store and reports [the new folder].",
)
def nightly(
    config: str | None,
    json_output: bool,
    folder: Path | None,
    shards: tuple[str, ...],
    results: str | None,
) -> int:
    """Run the nightly job of CONFIG (TOML): update, check drift, rebase, refit, gates, publish.

    The smallest CONFIG has the keys store, shards and output (paths or URLs), and a section
    [refit] with topics = NUMBER. A section [create] makes a store that does not exist yet.
    With --init, the command writes a folder in which the job can run, prints the next commands
    and ends.

    Exit codes beside those of all commands: 0 published, 10 no new data, 11 rejected by a gate.
    """
    if config is not None and folder is not None and shards:
        raise InvalidInput(f"{config} does not belong to --init; {quoted_pattern('--shards')}")
    if (config is None) == (folder is None):
        raise InvalidInput("give either CONFIG, or --init FOLDER for a new nightly job")
    if folder is not None:
        write_night_folder(folder, shards, results, datetime.now(UTC).date())
        for pattern in shards:
            if problem := without_match(pattern):
                tell(
                    f"warning: {problem}; correct shards in {folder / 'night.toml'}, or write the "
                    "documents before the first night"
                )
        confirm(*_next_steps(folder, [*shards, results or ""]))
        return 0
    if shards or results:
        raise InvalidInput("--shards and --results belong to --init; write them into CONFIG")
    assert config is not None
    wanted = read_config(config)

    log = event_logger().bind(store=wanted.store) if json_output else None

    pages = list[str]()

    def told(step: StepReport) -> None:
        if log is not None:
            log.info(step.step, seconds=step.seconds, **step.values)
            click.echo(json.dumps(asdict(step), ensure_ascii=False, allow_nan=False))
        else:
            if "url" in step.values:
                pages.append(f"{step.values['url'].removesuffix('.json')}.html")
            note(_line_of(step))
            for line in filter(None, [*step.values.get("told", ()), step.values.get("why")]):
                note(f"  {line}")
            for line in step.values.get("warnings", ()):
                tell(f"  warning: {line}")

    # with --json, print nothing else, so that each line is a JSON object
    with running(Session(**asdict(wanted.cluster)), quiet=json_output) as run:
        report = None
        try:
            report = run_nightly(wanted, run.cluster, told, run.progress)
        except Unfinished:
            raise  # this error has its own exit code, for unreadable shards
        except StreamingMomentsError as error:
            # the nightly job has no options, so the error names keys of the configuration file
            raise InvalidInput(error.said(of_nights)) from error
        finally:
            if pages and report is None:
                note(f"page: {pages[-1]}")  # page about the nightly job, which failed
    if not json_output:
        # cron mails what `say` prints, so use `say` if there are new data but no model is published
        (say if report.exit_code == ExitCode.REJECTED else confirm)(_summary(report))
        if report.version is None:
            tell(NO_STORE_YET)
        for line in report.decision:
            tell(line)
        if report.growth:
            note(report.growth)
        for line in _warnings(report):
            note(f"warning: {line}")
    for url, reason in report.bad:
        if log is not None:
            log.warning("left out", shard=url, reason=reason)
        else:
            tell(f"left out {url}: {reason}")
    if not json_output:
        note(f"page: {pages[-1]}")
    return report.exit_code


def _summary(report: NightReport) -> str:
    reasons = f": {'; '.join(report.reasons)}" if report.reasons else ""
    model = f", model {report.model}" if report.model else ""
    warned = f"; {of_number(len(report.warnings), 'warning')}" if report.warnings else ""
    counted = f"{of_number(report.counted, 'shard')} counted"
    left_out = f", {of_number(len(report.bad), 'shard')} left out" if report.bad else ""
    return f"{_nothing(report)}{report.outcome}{reasons}; {counted}{left_out}{model}{warned}"


def _nothing(report: NightReport) -> str:
    """Return how the message begins if no pattern in `shards` matches a shard; otherwise ""."""
    [found] = (step.values for step in report.steps if step.step == "list")
    nothing = found.get("unmatched") and not found["shards"] and not found.get("told")
    return "no pattern of shards matches anything: " if nothing else ""


def _warnings(report: NightReport) -> list[str]:
    """Return the reasons why topics may be poor, if this run created a store of documents."""
    made = any(step.step == "create" for step in report.steps)
    status = report.status
    return warnings_of(asdict(status)) if made and isinstance(status, Status) else []


def _next_steps(folder: Path, urls: Sequence[str]) -> list[str]:
    keys = "  set -a; . ./environment; set +a         # after you have written the keys there"
    units = f"schedule/{UNIT}.*"
    return [
        f"Wrote a night to {folder}: {files_of(folder)}.",
        "Next:",
        f"  cd {shlex.quote(str(folder))}",
        *([keys] if any("://" in url for url in urls) else []),
        "  streaming-moments nightly night.toml    # creates the store, publishes a first model",
        "To run it every night at 3:15, use cron or systemd:",
        "  (crontab -l; cat schedule/crontab) | crontab -",
        f'  systemctl --user link "$PWD"/{units} && systemctl --user enable --now {UNIT}.timer',
    ]


# Values that are not printed in the line of a step. Those in `_LINES` get lines of their own, and
# the others are on the page.
_LINES = frozenset({"told", "warnings", "why"})
_ELSEWHERE = _LINES | {
    "undecided",
    "unmatched",
    "url",
    "published",
    "alpha0",
    "method",
    "version",
}
_COUNTED = {
    "documents": "document",
    "gates": "gate",
    "shards": "shard",
    "tokens": "token",
    "topics": "topic",
    "words": "word",
}
# words for people that replace the names of some values
_SHOWN = {
    "already": "counted before",
    "bad": "left out",
    "captured": "captured spectrum",
    "kept": "same topics",
    "npmi": "NPMI",
    "outside": "tokens outside",
    "outside_share": "share of tokens outside",
}


def _line_of(step: StepReport) -> str:
    """Return the line of a step for people: its results, and the number of items in lists.

    Examples
    --------
    >>> _line_of(StepReport("update", 3.21, {"counted": 1200, "documents": 1, "bad": ["a", "b"]}))
    'count new shards              3.2 s  counted 1,200, 1 document, left out 2'
    >>> _line_of(StepReport("refit", 16.04, {"topics": 10, "npmi": 0.1234, "umass": None}))
    'fit the model                16.0 s  10 topics, NPMI 0.123'
    >>> _line_of(StepReport("match", 0.04, {"born": [], "gone": 0}))
    'match the published model     0.0 s'
    """
    told = []
    for name, value in step.values.items():
        found = len(value) if isinstance(value, list | tuple) else value
        # show a share (a float) of 0, because it is a result
        nothing = found is None or found == "" or (found == 0 and not isinstance(found, float))
        if name in _ELSEWHERE or nothing:
            continue
        if name in _COUNTED and isinstance(found, int):
            told.append(of_number(found, _COUNTED[name]))
            continue
        text = f"{found:,}" if isinstance(found, int) and not isinstance(found, bool) else found
        if isinstance(found, float):
            text = f"{found:.3g}" if abs(found) < 1000 else f"{found:,.0f}"
        told.append(f"{_SHOWN.get(name, name).replace('_', ' ')} {text}")
    return f"{in_words(step.step):<{WIDEST}}{step.seconds:8.1f} s  {', '.join(told)}".rstrip()

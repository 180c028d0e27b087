"""The folder of a new nightly job: its configuration, its schedule and example documents."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from streaming_moments.pipelines.command_line.new_folders.examples import write_examples
from streaming_moments.pipelines.command_line.new_folders.writing import write_new_folder
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.files.backends import require_bucket_name

UNIT = "streaming-moments-night"
_EXAMPLES = ("documents/*.jsonl", "examples; the name of a file is its day")
_NIGHT = """\
# The nightly job: streaming-moments nightly night.toml
# Relative paths start at the folder in which the command runs. Other sections and all keys:
# "A night in detail" and "Configuration" of the documentation.
store = {store}              # the first night creates it
shards = [                   # a night counts the new ones
{shards}
]
output = {output}           # a report and a page for each night, and index.html

[create]                     # how the first night creates the store; options of `create`
languages = ["auto"]         # removes the stop words of the languages of the documents
{sizes}
# text_column = "text"       # of Parquet, JSON Lines and CSV
# passage_words = 200        # splits long documents into passages of 200 words

[refit]
{topics}

[gates]                      # a model that exceeds a bound is not published
max_held_out_drop = 0.05     # largest drop of the held-out log-likelihood, in nats
# min_documents = 1000
"""
_SIZES = "max_topics = 32              # most topics that a refit can find"
_TOPICS = """\
topics = [5, 10, 20]         # fits the best of these
# topics = "auto"            # finds the number of separable topics: no comparison, takes longer"""
# the same settings for the example documents, which are few
_SMALL_SIZES = "max_topics = 16\nmin_documents = 3"
_FEW_TOPICS = """\
topics = [2, 3, 4, 6]        # fits the best of these
# topics = "auto"            # finds the number of separable topics, without a comparison"""
_ENVIRONMENT = """\
# Variables of the scheduled night, as NAME=value. Remove the # where you need one.
# AWS_ACCESS_KEY_ID=
# AWS_SECRET_ACCESS_KEY=
# AWS_PROFILE=
# AWS_ENDPOINT_URL=http://localhost:9000
# AWS_DEFAULT_REGION=
"""
_CRONTAB = (
    "# Every night at 3:15\n15 3 * * *  cd {folder} && set -a && . ./environment && "
    "{command} nightly night.toml >> night.log 2>&1\n"
)
_SERVICE = """\
[Unit]
Description=Topics of the day: update, refit, publish

[Service]
Type=oneshot
WorkingDirectory={folder}
EnvironmentFile={folder}/environment
ExecStart={command} nightly night.toml
# 10: there were no new documents
SuccessExitStatus=10
"""
_TIMER = """\
[Unit]
Description=Topics of the day, every night

[Timer]
OnCalendar=*-*-* 03:15:00
# if the machine was off at that time, run at its next start
Persistent=true

[Install]
WantedBy=timers.target
"""


def configuration(
    shards: Sequence[str] = (), results: str | None = None, sealed: str | None = None
) -> str:
    """Return the configuration of a nightly job for given shards, or for the example documents.

    Store and reports are below the URL `results`, or else in the folder of the job. Local paths
    become absolute, because the job runs in a folder of its own. `sealed` is the pattern of
    documents that a service accepted. Raises InvalidInput if a URL is invalid.
    """
    place = "" if results is None else f"{_absolute(results).rstrip('/')}/"
    sources = [(_absolute(one), "") for one in shards] or [_EXAMPLES]
    if sealed is not None:
        sources.append((sealed, "documents that the service accepted; none before its first start"))
    own = bool(shards)
    text = _NIGHT.format(
        store=_text(f"{place}store"),
        shards="\n".join(
            f"    {_text(url)},{f'     # {comment}' if comment else ''}" for url, comment in sources
        ),
        output=_text(f"{place}reports"),
        sizes=_SIZES if own else _SMALL_SIZES,
        topics=_TOPICS if own else _FEW_TOPICS,
    )
    config_of(tomllib.loads(text), "--init")
    return text


def write_night_folder(
    folder: Path, shards: Sequence[str], results: str | None, today: date
) -> None:
    """Write the files of a nightly job into a new folder.

    Without `shards`, it also writes example documents. Errors as in `write_new_folder` and
    `configuration`.
    """
    night, whole, command = configuration(shards, results), folder.resolve(), _command()

    def write(staged: Path) -> None:
        (staged / "night.toml").write_text(night, encoding="utf-8")
        if not shards:
            write_examples(staged / "documents", today)
        environment = staged / "environment"
        environment.touch(mode=0o600)  # only its owner may read it, because it may contain secrets
        environment.write_text(_ENVIRONMENT, encoding="utf-8")
        place = staged / "schedule"
        place.mkdir()
        line = _CRONTAB.format(
            folder=shlex.quote(str(whole)).replace("%", r"\%"),
            command=shlex.join(command).replace("%", r"\%"),
        )
        (place / "crontab").write_text(line, encoding="utf-8")
        unit = _SERVICE.format(
            folder=str(whole).replace("%", "%%"), command=" ".join(map(_quoted, command))
        )
        (place / f"{UNIT}.service").write_text(unit, encoding="utf-8")
        (place / f"{UNIT}.timer").write_text(_TIMER, encoding="utf-8")

    write_new_folder(folder, write, last="night.toml")


def _command() -> list[str]:
    """Return this command with its full path, because cron and systemd have another PATH."""
    beside = Path(sys.executable).with_name("streaming-moments")
    found = str(beside) if beside.exists() else shutil.which("streaming-moments")
    return [found] if found else [sys.executable, "-m", "streaming_moments"]


def _quoted(word: str) -> str:
    """Quote a word for a unit of systemd."""
    text = word.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%")
    return f'"{text}"'


def _absolute(url: str) -> str:
    return url if "://" in require_bucket_name(url) else os.path.abspath(url)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)

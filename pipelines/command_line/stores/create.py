"""The command that makes a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

import click

from streaming_moments.pipelines.command_help import GroupedCommand, in_section
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_json,
    store_argument,
)
from streaming_moments.pipelines.counting_options import (
    WORDS,
    CountingOptions,
    PilotOptions,
)
from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind, require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.recognise import recognised
from streaming_moments.pipelines.jobs.sites.like import created_like
from streaming_moments.pipelines.option_types import declared_options, options_given
from streaming_moments.pipelines.reports.kinds.registry import (
    advice_on,
    details_text,
    sizes_of,
    sizes_text,
)
from streaming_moments.pipelines.reports.outside_words import drawn_of, language_line, pilot_line
from streaming_moments.pipelines.terminal import confirm, detail, note, tell
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore


def with_kind(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    storage_options: Mapping[str, object] | None,
    json_output: bool,
) -> tuple[KindOptions, CountingOptions, str]:
    """Return the options of a command; without `--kind`, change them as the first shards imply.

    The last value is a line that says how the shards are read. If the options change, this function
    prints the line itself, unless the command answers in JSON, and returns "".
    """
    given = options_given(KindOptions, CountingOptions, PilotOptions)
    if "kind" in given:
        return shape, counting, ""
    found = recognised(shards, shape, counting, given, storage_options)
    if found.warning:
        tell(f"warning: {found.warning}")
    line = f"SHARDS are read as {found.what} (`{found.options}`); if that is wrong, give --kind."
    early = not json_output and (found.shape, found.counting) != (shape, counting)
    if early:
        note(line)
    return found.shape, found.counting, "" if early else line


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments create store 'shards/*.parquet'",
        "streaming-moments create store 'texts/*.txt' --language italian --passage-words 200",
        "streaming-moments create berlin --like hub --text-column body",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@in_section(
    WORDS,
    "--like",
    type=SHARD_URL,
    metavar="STORE",
    help="Use the words, basis and rules of this store, or of a file that `foundation` wrote; "
    "needs no SHARDS.",
)
@declared_options(KindOptions, "shape")
@declared_options(CountingOptions, "counting")
@declared_options(PilotOptions, "pilot")
@job_options
def create(
    store: str,
    shards: tuple[str, ...],
    like: str | None,
    shape: KindOptions,
    counting: CountingOptions,
    pilot: PilotOptions,
    job: JobSetup,
) -> None:
    """Create STORE: choose its vocabulary and basis from a sample of SHARDS. Counts nothing yet.

    Without --kind, the command looks at the first shards and prints how it reads them. It refuses
    shards that fit several kinds, and prints the options that decide.

    With --like, STORE counts the same words by the same rules as another store, so that `merge` can
    add up the two stores. Only the format of SHARDS and the place of texts and dates may differ.
    """
    if like is not None:
        given = options_given(KindOptions, CountingOptions, PilotOptions)
        made = created_like(store, like, given, counting, job.storage_options, bool(shards))
        _say_created(made, job.json_output)
        return
    if not shards:
        raise click.MissingParameter(param_type="argument", param_hint="'SHARDS...'")
    # refuse an existing STORE before reading shards, because an error of a shard would hide this
    # one
    require_absent(Folder.at(store, job.storage_options))
    listed = list_shards(shards, job.storage_options, counting.format, tell=tell)
    shape, counting, read_as = with_kind(
        listed, shape, counting, job.storage_options, job.json_output
    )
    require_options_of(shape, counting, pilot)
    with job.running() as run:
        made = create_kind(store, listed, shape, counting, pilot, run)
    _say_created(made, job.json_output, read_as)


def _say_created(made: MomentStore, json_output: bool, read_as: str = "") -> None:
    """Print what was created, and how the kind of its shards was recognised."""
    drawn = drawn_of(made)
    advice = advice_on(made, drawn.get("outside_share"))
    if json_output:
        print_json(
            {
                "store": made.url,
                "version": made.version,
                "message": made.commit.message,
                "kind": made.kind,
                **sizes_of(made),
                "pilot": drawn or None,
                "advice": list(advice),
            }
        )
        return
    sampled, drawing = f"Chosen {made.commit.message.removeprefix('create ')}.", pilot_line(made)
    confirm(
        f"Created {made.url}, of kind {made.kind}{sizes_text(sizes_of(made))}.",
        *([] if drawing else [sampled]),
        *(str(line) for line in (drawing, read_as, language_line(made)) if line),
        *advice,
        f"Next: streaming-moments update {quote(made.url)} SHARDS...",
    )
    for line in details_text(sizes_of(made)), sampled if drawing else "":
        detail(line)

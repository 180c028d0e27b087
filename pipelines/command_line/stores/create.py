"""The command that makes a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    JobSetup,
    job_options,
    print_json,
    shards_argument,
    store_argument,
)
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind, require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.recognise import recognised
from streaming_moments.pipelines.option_types import declared_options, options_given
from streaming_moments.pipelines.reports.kinds.registry import (
    advice_on,
    sizes_of,
    sizes_text,
)
from streaming_moments.pipelines.reports.outside_words import drawn_of, language_line, pilot_line
from streaming_moments.pipelines.terminal import detail, note, say, tell
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard


def with_kind(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    storage_options: Mapping[str, object] | None,
    json_output: bool,
) -> tuple[KindOptions, CountingOptions, str]:
    """The options of a command, and those that its first shards imply if `--kind` is missing.

    The last value is the line that says so. It is printed here already if the shards hold no
    documents, unless the command answers in JSON.
    """
    given = options_given(KindOptions, CountingOptions, PilotOptions)
    if "kind" in given:
        return shape, counting, ""
    found = recognised(shards, shape, counting, given, storage_options)
    line = f"SHARDS are read as {found.what} (`{found.options}`); otherwise give --kind."
    early = not json_output and (found.shape, found.counting) != (shape, counting)
    if early:
        note(line)
    return found.shape, found.counting, "" if early else line


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments create store 'shards/*.parquet'",
        "streaming-moments create store 'texts/*.txt' --language italian --passage-words 200",
        "streaming-moments create store 'rows/*.parquet' --kind vectors --columns embedding",
    ),
)
@store_argument
@shards_argument
@declared_options(KindOptions, "shape")
@declared_options(CountingOptions, "counting")
@declared_options(PilotOptions, "pilot")
@job_options
def create(
    store: str,
    shards: tuple[str, ...],
    shape: KindOptions,
    counting: CountingOptions,
    pilot: PilotOptions,
    job: JobSetup,
) -> None:
    """Create STORE: choose its vocabulary and basis from a sample of SHARDS. Counts nothing yet.

    Without --kind, the command looks at the first shards and prints what it takes them for. It
    refuses shards that fit several kinds, and prints the options that decide.
    """
    listed = list_shards(shards, job.storage_options, counting.format, tell=tell)
    shape, counting, read_as = with_kind(
        listed, shape, counting, job.storage_options, job.json_output
    )
    require_options_of(shape, counting, pilot)
    with job.running() as run:
        made = create_kind(store, listed, shape, counting, pilot, run)
    drawn = drawn_of(made)
    advice = advice_on(made, drawn.get("outside_share"))
    if job.json_output:
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
    drawing = pilot_line(made)
    say(
        f"Created {made.url}, of kind {made.kind}{sizes_text(sizes_of(made))}.",
        drawing or made.commit.message,
        *(str(line) for line in (read_as, language_line(made)) if line),
        *advice,
        f"Next: streaming-moments update {made.url} SHARDS...",
    )
    if drawing:
        detail(made.commit.message)

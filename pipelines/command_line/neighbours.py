"""The command that groups the edges of a graph into lists of neighbours."""

from __future__ import annotations

from dataclasses import asdict
from shlex import quote

import click

from streaming_moments.pipelines.command_help import GroupedCommand, OneOf
from streaming_moments.pipelines.command_line.shared_options import (
    STORE_URL,
    JobSetup,
    job_options,
    print_json,
    shards_argument,
)
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.jobs.outputs.neighbours import neighbours as group_edges
from streaming_moments.pipelines.option_types import COUNT
from streaming_moments.pipelines.terminal import confirm, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.storage.counting.graphs.edges import NEIGHBOURS, EdgeColumns
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments neighbours 'edges/*.parquet' --output neighbours",
        "streaming-moments neighbours edges.csv --output out --source from --target to --directed",
    ),
)
@shards_argument
@click.option("--output", required=True, type=STORE_URL, help="Folder for the lists of neighbours.")
@click.option(
    "--source",
    default="source",
    show_default=True,
    metavar="NAME",
    help="Column of the first node.",
)
@click.option(
    "--target",
    default="target",
    show_default=True,
    metavar="NAME",
    help="Column of the second node.",
)
@click.option(
    "--directed",
    is_flag=True,
    help="List the second node as a neighbour of the first, but not the reverse.",
)
@click.option(
    "--parts", type=COUNT, help="Number of files to write [chosen from the size of SHARDS]."
)
@click.option(
    "--format",
    "kind",
    metavar="FORMAT",
    type=OneOf(tuple(FORMATS)),
    help=f"Format of the shards: {', '.join(FORMATS)} [by suffix].",
)
@job_options
def neighbours(
    shards: tuple[str, ...],
    output: str,
    source: str,
    target: str,
    directed: bool,
    parts: int | None,
    kind: str | None,
    job: JobSetup,
) -> None:
    """Write a document for each node of the edges in SHARDS: the list of its neighbours."""
    listed = list_shards(shards, job.storage_options, kind, tell=tell)
    columns = EdgeColumns(source, target, directed)
    with job.running() as run:
        found = group_edges(listed, output, run, columns, ShardFormat(kind), parts)
    if job.json_output:
        print_json(asdict(found))
        return
    words = PilotOptions().vocabulary_size
    every = f" --vocabulary-size {found.nodes}" if found.nodes > words else ""
    left = [of_number(found.duplicates, "duplicate edge")] * bool(found.duplicates)
    left += [of_number(found.loops, "loop")] * bool(found.loops)
    confirm(
        f"Wrote the neighbours of {of_number(found.nodes, 'node')} by "
        f"{of_number(found.edges, 'edge')} to {output} ({of_number(len(found.files), 'file')}).",
        *([f"Left out {' and '.join(left)}."] if left else []),
        f"Next: streaming-moments create STORE {quote(output.rstrip('/'))}/*.parquet --ids-column "
        f"{NEIGHBOURS} --min-documents 1 --max-document-fraction 1{every}",
    )
    if found.nodes > DEFAULT_CORE:
        confirm(
            f"with more than {DEFAULT_CORE:,} nodes, a store of --kind edges separates communities "
            "better, as lists use only that many core nodes"
        )

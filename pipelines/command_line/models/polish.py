"""The command that improves a model by passes over documents, if these still exist."""

from __future__ import annotations

from typing import Literal, cast

import click

from streaming_moments.models.passes.polishing import PASSES
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    console,
    job_options,
    print_json,
    store_argument,
    words_option,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.jobs.polish import polish_stored
from streaming_moments.pipelines.option_types import COUNT, OrAuto, StoreName
from streaming_moments.pipelines.reports.model_pages.registry import model_view
from streaming_moments.pipelines.terminal import QUIET, asked_for, confirm, detail, tell
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.model_changes import require_free
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments polish store",
        "streaming-moments polish store 'shards/*.parquet' --passes auto",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option(
    "--model", "parent", metavar="NAME", help="Name of the model to start from [the latest]."
)
@click.option(
    "--passes",
    type=OrAuto(COUNT),
    default=PASSES,
    show_default=True,
    help="Number of passes; auto: stop when another pass would change topics by much less than "
    "their error bars.",
)
@click.option("--alpha", is_flag=True, help="Also learn alpha, by one fixed-point step per pass.")
@click.option(
    "--name",
    type=StoreName(),
    help="Name of the new model [such as k20-polished2, for 2 passes from the model k20].",
)
@click.option("--skip-bad-shards", is_flag=True, help="Leave out shards that cannot be read.")
@click.option(
    "--allow-missing",
    is_flag=True,
    help="Leave out counted shards that no longer exist or have changed.",
)
@words_option
@job_options
def polish(
    store: str,
    shards: tuple[str, ...],
    parent: str | None,
    passes: int | Literal["auto"],
    alpha: bool,
    name: str | None,
    skip_bad_shards: bool,
    allow_missing: bool,
    words: int,
    job: JobSetup,
) -> int:
    """Improve a model of STORE by passes over SHARDS, and save it as a new model.

    By default, SHARDS are the shards that STORE has counted, of the days that the model covers.
    After an interruption, the same command continues after the last complete group of shards.
    """
    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    begun = model_called(opened.commit, parent)
    chosen = name or f"{begun}-polished{passes}"
    require_free(opened.commit, chosen)
    kind = opened.form.kind
    listed = list_shards(shards, job.storage_options, kind, tell=tell) if shards else None
    with job.running() as run:
        done = polish_stored(
            opened, begun, run, listed, passes, alpha, chosen, skip_bad_shards, allow_missing
        )
    kept, polished, bad = cast("MomentStore", done.kept), done.model, done.result.bad
    read = store_for(opened, begun, polished)
    view = model_view(read, polished, words, labels=kept.models[chosen].labels)
    if job.json_output:
        print_json(
            {
                "store": kept.url,
                "model": chosen,
                "parent": begun,
                "version": kept.version,
                "bad": [{"url": error.url, "reason": error.reason} for error in bad],
                **view.as_json,
            }
        )
    else:
        if not asked_for(QUIET):
            view.print(console())
        confirm("", f"Saved model {chosen} in version {kept.version}.")
        for caution in view.described.cautions:
            tell(f"warning: {caution}")
        detail(view.described.sentence)
    for error in bad:
        tell(f"left out {error}")
    return ExitCode.BAD_SHARDS if bad else 0

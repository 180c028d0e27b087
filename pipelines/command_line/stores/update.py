"""The command that counts new shards."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from tempfile import NamedTemporaryFile

import click

from streaming_moments.pipelines.cluster.run import COMMIT_EVERY
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_json,
    shards_argument,
    store_argument,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.jobs.update import UpdateResult
from streaming_moments.pipelines.jobs.update import update as update_store
from streaming_moments.pipelines.option_types import Duration, Whole
from streaming_moments.pipelines.reports.kinds.registry import (
    advice_on,
    left_out_lines,
    outside_lines,
    records_text,
)
from streaming_moments.pipelines.reports.outside_words import slow_tokeniser
from streaming_moments.pipelines.terminal import confirm, note, tell
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.quality.drift import outside_share
from streaming_moments.storage.files.parts import STANDARD_INPUT
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_BLOCK_BYTES = 1 << 20
_SHOWN = 20


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments update store 'shards/*.parquet'",
        "streaming-moments update store s3://bucket/shards/ --workers 4 --skip-bad-shards",
    ),
)
@store_argument
@shards_argument
@click.option("--skip-bad-shards", is_flag=True, help="Leave out shards that cannot be read.")
@click.option(
    "--unique",
    is_flag=True,
    help="Refuse shards whose content is already counted under another name.",
)
@click.option(
    "--include-forgotten", is_flag=True, help="Also count shards that were forgotten or purged."
)
@click.option(
    "--include-moved",
    is_flag=True,
    help="Count moved shards again under their new names; `rename` only changes the names.",
)
@click.option(
    "--replace", is_flag=True, help="Count changed shards again, in place of their old content."
)
@click.option(
    "--old",
    multiple=True,
    type=SHARD_URL,
    help="With --replace: file with the old content [read from its segment].",
)
@click.option(
    "--compact-after",
    type=Whole(0),
    default=COMPACT_AFTER,
    show_default=True,
    help="Merge segments once this many have about the same size; 0: never.",
)
@click.option(
    "--commit-every",
    type=Duration(),
    default=timedelta(seconds=COMMIT_EVERY),
    help="Time between commits, at least 1m. If commits are slow, it grows to 20 times the time "
    "that a commit takes [10m].",
)
@job_options
def update(
    store: str,
    shards: tuple[str, ...],
    skip_bad_shards: bool,
    unique: bool,
    include_forgotten: bool,
    include_moved: bool,
    replace: bool,
    old: tuple[str, ...],
    compact_after: int,
    commit_every: timedelta,
    job: JobSetup,
) -> int:
    """Count the SHARDS that STORE has not counted yet.

    If a file has grown, only its new lines are counted; in a folder of texts, only the new files.
    The name - stands for standard input. Forgotten shards are skipped, by name and by content.
    """
    if old and not replace:
        raise click.UsageError(
            "--old names the content that --replace subtracts; give both options."
        )
    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    kind = opened.form.kind
    named = [url for url in shards if url != "-"]
    if len(named) < len(shards) and job.session.scheduler is not None:
        raise click.UsageError(
            "the workers of --scheduler cannot read standard input; write the documents to a file "
            "that they can read"
        )
    listed: Sequence[Shard] = ()
    if named:
        folders = functools.partial(_uncounted, opened)
        listed = list_shards(named, job.storage_options, kind, tell=tell, apart=folders)
    copies = list_shards(old, job.storage_options, kind, tell=tell) if old else []
    with ExitStack() as stack:
        if len(named) < len(shards):
            listed = [*listed, stack.enter_context(_standard_input())]
        run = stack.enter_context(job.running(commit_every=commit_every))
        if job.session.memory is not None:
            from streaming_moments.pipelines.aggregation.aggregation import plan_of

            # refuse a --memory that is too small even if there is nothing to count
            plan_of(opened, run)
        result = update_store(
            opened,
            listed,
            run,
            skip_bad_shards,
            old=copies if replace else None,
            unique=unique,
            include_forgotten=include_forgotten,
            include_moved=include_moved,
        )
        final = compact_when_many(result.store, compact_after, run)
    share = outside_share(result.tokens, result.outside)
    if job.json_output:
        print_json(_as_json(result, final, share))
    else:
        parts = ["no new shards"]
        if result.counted:
            records = records_text(final, result.documents, result.tokens)
            parts = [f"counted {of_number(result.counted, 'shard')} ({records})"]
        parts += [f"{result.already:,} counted before"] * bool(result.already)
        parts += [f"{result.replaced:,} replaced"] * bool(result.replaced)
        confirm(f"version {final.version}: {', '.join(parts)}")
        confirm(*left_out_lines(result.outside, final), *outside_lines(final, share))
        if (slow := slow_tokeniser(final, result.tokeniser_share, "shards")) is not None:
            confirm(str(slow))
    for error in result.bad:
        tell(f"left out {error}")
    for url, other in result.copies[:_SHOWN]:
        note(f"{url} has the same content as {other}; both are counted (--unique refuses copies)")
    if len(result.copies) > _SHOWN:
        more = len(result.copies) - _SHOWN
        note(f"{agreeing(more, 'more shard has', 'more shards have')} the content of another")
    return ExitCode.BAD_SHARDS if result.bad else 0


def _as_json(result: UpdateResult, final: MomentStore, share: float | None) -> dict[str, object]:
    """Return the result of an update for JSON; `final` is the store afterwards, perhaps compacted.

    `share` is the share of tokens outside the vocabulary.
    """
    return {
        "store": final.url,
        "version": final.version,
        "segments": len(final.commit.segments),
        "segments_read": len(final.parts),
        "counted": result.counted,
        "already": result.already,
        "replaced": result.replaced,
        "copies": [{"url": url, "content_of": other} for url, other in result.copies],
        "documents": result.documents,
        "tokens": result.tokens,
        "outside": result.outside,
        "outside_share": share,
        "tokeniser_share": result.tokeniser_share,
        "advice": list(advice_on(final, share)),
        "bad": [{"url": error.url, "reason": error.reason} for error in result.bad],
        "forgotten": [{"url": url, "reason": reason} for url, reason in result.forgotten],
    }


def _uncounted(store: MomentStore, url: str) -> bool:
    return store.ledger().find(url) is None


@contextmanager
def _standard_input() -> Iterator[Shard]:
    """Yield standard input as a shard named by its content: JSON Lines, or lines of text.

    A temporary file holds the input, because a task may read it again.
    """
    digest, first = hashlib.sha256(), b""
    with NamedTemporaryFile(prefix="streaming-moments-") as kept:
        while block := sys.stdin.buffer.read(_BLOCK_BYTES):
            first = first or block.lstrip()[:1]
            digest.update(block)
            kept.write(block)
        kept.flush()
        suffix = ".jsonl" if first == b"{" else ".txt"
        name = f"{STANDARD_INPUT}{digest.hexdigest()}{suffix}"
        yield Shard(name, kept.tell(), read_at=kept.name)

"""Commands for the history of a store, and for what tidies it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import click

from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.command_line.options import (
    SHARD_URL,
    Session,
    cluster_options,
    console,
    json_option,
    limit_options,
    print_json,
    running,
    shards_argument,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.jobs.compact import compact as compact_store
from streaming_moments.pipelines.jobs.forget import forget as forget_shards
from streaming_moments.pipelines.jobs.forgotten import counted_or_forgotten
from streaming_moments.pipelines.option_types import (
    VERSION,
    Duration,
    StoreName,
    VersionsCommand,
)
from streaming_moments.pipelines.terminal import say, tell
from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.operations.history import (
    Difference,
    counted_again,
    difference,
    last_published,
)
from streaming_moments.storage.operations.history import rollback as rollback_store
from streaming_moments.storage.operations.history import tag as tag_model
from streaming_moments.storage.operations.labels import label as label_topic
from streaming_moments.storage.operations.traces import beyond
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 20


@click.command(cls=VersionsCommand)
@store_argument
@click.argument("version", type=VERSION, required=False)
@click.option(
    "--model",
    "tag_name",
    type=StoreName(),
    is_flag=False,
    flag_value="published",
    metavar="[TAG]",
    help="Let TAG [published] stand for the model it stood for before, and nothing else.",
)
@click.option("--message", default="", help="For the log.")
@storage_option
@json_option
def rollback(
    store: str,
    version: int | None,
    tag_name: str | None,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Make STORE again what it was at VERSION, or a tag what it was, by a new commit.

    Shards that were forgotten since are counted again if VERSION counts them.
    """
    if (version is None) == (tag_name is None):
        raise click.UsageError("give a VERSION, or --model for the model published before.")
    if tag_name is not None:
        opened = MomentStore.open(store, storage_options=storage_options)
        retagged = tag_model(opened, tag_name, last_published(opened, tag_name), message)
        _print_version(
            retagged, f"{tag_name} is model {retagged.commit.tags[tag_name]}", json_output
        )
        return
    assert version is not None
    then = MomentStore.open(store, version, storage_options)
    back = rollback_store(then, then.version, message)
    _print_version(back, f"what version {then.version} was", json_output)
    again = counted_again(CommitLog(back.folder).read(back.version - 1), back)
    if again:
        more = f" and {len(again) - _SHOWN} more" if len(again) > _SHOWN else ""
        tell(
            f"{len(again)} shards that were forgotten are counted again: "
            f"{', '.join(again[:_SHOWN])}{more}; `forget` them again if they must go"
        )


@click.command()
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option("--version", type=VERSION, help="Version [the latest].")
@click.option("--purged", is_flag=True, help="Also whether any file still holds aught of SHARDS.")
@storage_option
@json_option
def verify(
    store: str,
    shards: tuple[str, ...],
    version: int | None,
    purged: bool,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> int:
    """Read every file of a version of STORE and check hashes and sums; exit code 2 if unsound.

    With --purged, exit code 2 as well if any version, model or file of STORE holds anything of
    SHARDS, or if that cannot be told.
    """
    if bool(shards) != purged or (purged and version is not None):
        raise click.UsageError("give SHARDS with --purged, which is of all versions, or neither.")
    # what open would refuse is to be listed
    opened = MomentStore.open(store, version, storage_options, whole=False)
    problems = opened.verify()
    content: dict[str, Any] = {"store": opened.url, "version": opened.version}
    lines = [f"version {opened.version} is sound"]
    if purged:
        from streaming_moments.pipelines.jobs.purge import look_for_purged

        found = look_for_purged(opened, shards, storage_options)
        problems += map(str, found.traces)
        content |= {"purged": not found.traces, "shards": list(found.names)}
        unreachable = beyond(opened.foundation)
        content |= {"by_name_alone": list(found.unread), "cannot_reach": list(unreachable)}
        lines.append(f"nothing of {len(found.names)} shards is left in {opened.url}")
    if json_output:
        print_json({**content, "problems": problems})
    else:
        say(*(problems or lines))
        if purged:
            for url in found.unread:
                say(f"{url} cannot be read any more, so it was looked for by name alone")
            say("what this cannot reach:", *(f"  {line}" for line in unreachable))
    return ExitCode.INPUT if problems else 0


@click.command(cls=VersionsCommand)
@store_argument
@click.argument("before", type=VERSION)
@click.argument("after", type=VERSION)
@click.option("--model", help="Name or tag of the models to compare [all both versions have].")
@storage_option
@json_option
def diff(
    store: str,
    before: int,
    after: int,
    model: str | None,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show what changed in STORE from version BEFORE to version AFTER."""
    opened = MomentStore.open(store, storage_options=storage_options)
    found = difference(opened, before, after, model)
    if json_output:
        print_json(asdict(found))
    else:
        say(*_difference_lines(found))


@click.command()
@store_argument
@click.argument("name", type=StoreName())
@click.argument("model", type=StoreName())
@storage_option
@json_option
def tag(
    store: str, name: str, model: str, storage_options: dict[str, Any] | None, json_output: bool
) -> None:
    """Let the tag NAME stand for MODEL of STORE, wherever it stood before."""
    tagged = tag_model(MomentStore.open(store, storage_options=storage_options), name, model)
    _print_version(tagged, f"{name} is model {tagged.commit.tags[name]}", json_output)


@click.command()
@store_argument
@click.argument("topic", type=click.IntRange(0))
@click.argument("text", required=False)
@click.option("--model", help="Name or tag of the model [the latest].")
@click.option("--remove", is_flag=True, help="Take the label away.")
@click.option("--message", default="", help="For the log.")
@storage_option
@json_option
def label(
    store: str,
    topic: int,
    text: str | None,
    model: str | None,
    remove: bool,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Let TOPIC of a model of STORE be called TEXT, wherever it is shown.

    Models that are fitted later take the label over for the topic that is matched with it.
    """
    if (text is None) != remove:
        raise click.UsageError("give a TEXT, or --remove to take the label away.")
    opened = MomentStore.open(store, storage_options=storage_options)
    after = label_topic(opened, topic, text or "", model, message)
    called = "has no label" if remove else f"is called {text}"
    _print_version(after, f"topic {topic} {called}", json_output)


@click.command()
@store_argument
@click.option(
    "--by",
    type=click.Choice(["day", "month", "year", "all"]),
    default="day",
    show_default=True,
    help="Add up documents of one day, month or year, or all.",
)
@cluster_options
@storage_option
@json_option
def compact(
    store: str,
    by: Bucket,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Replace the segments of STORE by their sums; older versions keep theirs."""
    opened = MomentStore.open(store, storage_options=storage_options).writable()
    before = len(opened.commit.segments)
    with running(session) as run:
        after = compact_store(opened, run, by)
    _print_version(after, f"{before} segments became {len(after.commit.segments)}", json_output)


@click.command()
@store_argument
@shards_argument
@click.option(
    "--allow-again",
    is_flag=True,
    help="Let updates count SHARDS again; also of SHARDS that were forgotten before.",
)
@click.option("--message", default="", help="For the log.")
@limit_options
@cluster_options
@storage_option
@json_option
def forget(
    store: str,
    shards: tuple[str, ...],
    allow_again: bool,
    message: str,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Take counted SHARDS out of STORE, as if they had never come; reads them once more.

    Updates and nights skip them from then on, by name and by content.
    """
    opened = MomentStore.open(store, storage_options=storage_options).writable()
    latest = opened.latest()
    listed: Sequence[Shard]
    if allow_again:
        listed = counted_or_forgotten(latest, shards, storage_options)
    else:
        ledger = latest.ledger()
        listed = list_shards(
            shards,
            storage_options,
            opened.form.kind,
            counted=lambda url: ledger.find(url) is not None,
            tell=tell,
            apart=lambda folder: ledger.find(folder) is None,
        )
    with running(session, storage_options, limits) as run:
        after = forget_shards(opened, listed, run, message, allow_again)
    skipped = "may be counted again" if allow_again else "will be skipped by updates"
    _print_version(after, f"{len(listed)} shards forgotten, which {skipped}", json_output)


@click.command()
@store_argument
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, delete nothing.")
@click.option(
    "--grace",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Age from which it is garbage; shorter only while nobody writes.",
)
@storage_option
@json_option
def gc(
    store: str,
    dry_run: bool,
    grace: timedelta,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Delete what writers that died have left in STORE."""
    folder = MomentStore.open(store, storage_options=storage_options).folder
    garbage = find_garbage(folder, grace)
    if not dry_run:
        collect(folder, garbage)
    freed = sum(heap.size for heap in garbage)
    if json_output:
        places = [{"path": heap.path, "bytes": heap.size} for heap in garbage]
        print_json({"dry_run": dry_run, "bytes": freed, "garbage": places})
        return
    for heap in garbage:
        say(f"{heap.path}: {mebibytes(heap.size)} of {heap.modified:%Y-%m-%d %H:%M} UTC")
    would = "would be freed" if dry_run else "freed"
    say(f"{mebibytes(freed)} {would} in {len(garbage)} places")


@click.command()
@click.option("--folder", help="Keep shards, store and proportions here [a temporary folder].")
@cluster_options
def demo(folder: str | None, session: Session) -> None:
    """Find the topics of the State of the Union addresses, from scratch."""
    from streaming_moments.pipelines.command_line.demo import demo as run_demo

    with running(session) as run:
        run_demo(console(), folder, run)


def _print_version(store: MomentStore, what: str, json_output: bool) -> None:
    if not json_output:
        say(f"version {store.version}: {what}")
        return
    commit = store.commit
    print_json(
        {
            "store": store.url,
            "version": commit.version,
            "operation": commit.operation,
            "documents": commit.documents,
            "shards": commit.shards,
            "segments": len(commit.segments),
            "tags": dict(commit.tags),
        }
    )


def _difference_lines(found: Difference) -> list[str]:
    lines = [
        f"version {found.before} to {found.after}: {found.documents:+,} documents, "
        f"{found.tokens:+,} tokens, {len(found.added)} shards added, {len(found.removed)} removed"
    ]
    for sign, records in (("+", found.added), ("-", found.removed)):
        lines += [f"{sign} {record.url}: {record.documents:,}" for record in records[:_SHOWN]]
        if len(records) > _SHOWN:
            lines.append(f"{sign} and {len(records) - _SHOWN} more (--json lists all)")
    for name, moved in found.moved.items():
        lines.append(f"topics of {name}: {moved.before} to {moved.after}, total variation")
        lines += [f"  {one} -> {two}: {distance:.3f}" for one, two, distance in moved.pairs]
        lines += [f"  {topic} -> gone" for topic in moved.gone]
        lines += [f"  new -> {topic}" for topic in moved.new]
    return lines

"""Commands from documents to topics: each reads its arguments, calls one pipeline and prints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.create import PilotOptions
from streaming_moments.pipelines.create import create as create_store
from streaming_moments.pipelines.drift import drift_since
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.model_options import FitRequest, model_options
from streaming_moments.pipelines.option_types import COUNT, NUMBER, SEED, Share, StoreName
from streaming_moments.pipelines.options import (
    Session,
    Url,
    cluster_options,
    console,
    date_options,
    json_option,
    limit_options,
    print_json,
    running,
    shards_argument,
    storage_option,
    store_argument,
    window_options,
    words_option,
)
from streaming_moments.pipelines.refit import refit_by, with_coherence
from streaming_moments.pipelines.report import (
    as_json,
    described_as_json,
    documents_of,
    print_topics,
    topic_lines,
    update_as_json,
)
from streaming_moments.pipelines.status import print_status, status_of
from streaming_moments.pipelines.terminal import say, tell
from streaming_moments.pipelines.transform import transform as transform_shards
from streaming_moments.pipelines.update import update as update_store
from streaming_moments.storage.changes import require_free
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.formats import FORMATS, ReadLimits
from streaming_moments.storage.lineages import store_for
from streaming_moments.storage.models import model_called
from streaming_moments.storage.shards import ShardFormat, list_shards
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.tokens import TokenPolicy
from streaming_moments.storage.windows import Window, windowed
from streaming_moments.topic_model import TopicModel


@click.command()
@store_argument
@shards_argument
@click.option("--format", "kind", type=click.Choice(tuple(FORMATS)), help="Format [by suffix].")
@click.option("--text-column", default="text", show_default=True, help="Column or JSON field.")
@click.option("--ids-column", help="Column of token id lists, instead of text.")
@click.option("--counts-column", help="Column of the counts of the token ids.")
@click.option("--language", "languages", multiple=True, help="Stop words of; repeatable.")
@click.option("--stop-word", "stop_words", multiple=True, help="One more stop word; repeatable.")
@click.option(
    "--min-length", type=COUNT, default=2, show_default=True, help="Shortest term, in characters."
)
@click.option("--passage-words", type=COUNT, help="Cut documents into passages of so many words.")
@click.option(
    "--vocabulary-size", type=COUNT, default=10_000, show_default=True, help="Terms at most."
)
@click.option("--core", type=COUNT, default=4096, show_default=True, help="Core words at most.")
@click.option(
    "--max-topics", type=COUNT, default=32, show_default=True, help="Topics the sketch serves."
)
@click.option(
    "--min-documents", type=NUMBER, default=5, show_default=True, help="A term's passages, least."
)
@click.option(
    "--max-document-fraction",
    type=Share(min_open=True),
    default=0.5,
    show_default=True,
    help="A term's share of them, most.",
)
@click.option(
    "--pilot-documents", type=COUNT, default=20_000, show_default=True, help="Passages to sample."
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Of the sample and the basis.",
)
@click.option("--codocuments/--no-codocuments", default=True, help="Keep counts for coherence.")
@date_options
@limit_options
@cluster_options
@storage_option
def create(
    store: str,
    shards: tuple[str, ...],
    kind: str | None,
    text_column: str,
    ids_column: str | None,
    counts_column: str | None,
    languages: tuple[str, ...],
    stop_words: tuple[str, ...],
    min_length: int,
    passage_words: int | None,
    codocuments: bool,
    dates: DateSource,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    **pilot: Any,
) -> None:
    """Make STORE with a vocabulary and basis from a sample of SHARDS; counts nothing yet."""
    form = ShardFormat(kind, text_column, ids_column, counts_column)
    listed = list_shards(shards, storage_options, kind, tell=tell)
    holds = form.holds(listed[0].url)
    for shard in listed:
        if (other := form.holds(shard.url)) != holds:
            raise ShardError(
                shard.url,
                f"holds {other} and {listed[0].url} {holds}; a store is of one of them",
            )
    policy = None
    if holds == "texts":
        policy = TokenPolicy.for_languages(languages, min_length, passage_words, stop_words)
    elif passage_words or languages or stop_words:
        raise click.UsageError(
            "token ids have no order and no spelling: leave out --passage-words, --language and "
            "--stop-word"
        )
    with running(session) as (cluster, progress):
        made = create_store(
            store,
            listed,
            form,
            policy,
            PilotOptions(**pilot),
            cluster,
            codocuments,
            limits,
            storage_options,
            progress,
            dates,
        )
    say(
        f"created {made.url}: {made.basis.n_words:,} words, core {made.basis.core:,}, basis of "
        f"{made.basis.columns} columns; next: streaming-moments update {store} SHARDS..."
    )


@click.command()
@store_argument
@shards_argument
@click.option("--skip-bad-shards", is_flag=True, help="Leave out shards that cannot be read.")
@click.option(
    "--unique", is_flag=True, help="Refuse shards whose content is counted under another name."
)
@click.option("--replace", is_flag=True, help="Count shards with new content anew.")
@click.option(
    "--old",
    multiple=True,
    type=Url(),
    help="With --replace: copy of the old content [its segment].",
)
@click.option(
    "--compact-after",
    type=click.IntRange(0),
    default=COMPACT_AFTER,
    show_default=True,
    help="Sum up the segments when there are so many; 0: never.",
)
@limit_options
@cluster_options
@storage_option
@json_option
def update(
    store: str,
    shards: tuple[str, ...],
    skip_bad_shards: bool,
    unique: bool,
    replace: bool,
    old: tuple[str, ...],
    compact_after: int,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> int:
    """Count the SHARDS that STORE has not counted yet."""
    if old and not replace:
        raise click.UsageError("--old gives the content that --replace takes away; give both.")
    opened = MomentStore.open(store, storage_options=storage_options)
    listed = list_shards(shards, storage_options, opened.form.kind, tell=tell)
    copies = list_shards(old, storage_options, opened.form.kind, tell=tell) if old else []
    with running(session) as (cluster, progress):
        result = update_store(
            opened,
            listed,
            cluster,
            skip_bad_shards,
            limits,
            storage_options,
            progress,
            old=copies if replace else None,
            unique=unique,
        )
        final = compact_when_many(result.store, compact_after, cluster, progress)
    if json_output:
        print_json(update_as_json(result, final))
    else:
        say(
            f"version {final.version}: counted {result.counted} shards "
            f"({result.documents:,} documents, {result.tokens:,} tokens), "
            f"{result.already} were counted before"
            f"{f', {result.replaced} replaced' if result.replaced else ''}"
        )
    for error in result.bad:
        tell(f"left out {error}")
    for url, other in result.copies:
        tell(f"{url} has the content of {other}, which is counted as well (--unique refuses it)")
    return ExitCode.BAD_SHARDS if result.bad else 0


@click.command()
@store_argument
@model_options
@click.option("--version", type=int, help="Version to fit [the latest].")
@click.option("--name", type=StoreName(), help="Name of the model [by options and version].")
@window_options
@words_option
@cluster_options
@storage_option
@json_option
def refit(
    store: str,
    asked: FitRequest,
    version: int | None,
    name: str | None,
    window: Window,
    words: int,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Fit a model to STORE, without the documents, and keep it there."""
    opened = MomentStore.open(store, version, storage_options)
    chosen = name or f"{asked.label}-v{opened.version}{window.suffix}"
    require_free(opened.latest().commit, chosen)
    source = windowed(opened, window)
    with running(session) as (cluster, progress):
        model = refit_by(source, asked.model, asked.options, cluster, progress)
        if isinstance(model, TopicModel):
            model = with_coherence(source, model, cluster, progress)
    kept = opened.save_model(chosen, model, f"refit: {asked.options.said}")
    topical, said = isinstance(model, TopicModel), model.described()
    lines = topic_lines(model, opened.vocabulary, words) if topical else []
    if json_output:
        print_json(
            {
                "store": kept.url,
                "model": chosen,
                "fitted_version": opened.version,
                "version": kept.version,
                **described_as_json(model),
                "seed": asked.options.seed,
                "topics": [as_json(line) for line in lines],
            }
        )
        return
    print_topics(console(), lines, columns=said.columns)
    say(
        "",
        f"model {chosen} of {documents_of(model)} kept in version {kept.version}; {said.sentence}",
    )


@click.command()
@store_argument
@click.option("--version", type=int, help="Version [the latest].")
@click.option(
    "--drift",
    "model",
    metavar="MODEL",
    help="Also how far the documents have moved since this model, or tag, was fitted.",
)
@cluster_options
@storage_option
@json_option
def status(
    store: str,
    version: int | None,
    model: str | None,
    session: Session,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show what STORE holds."""
    opened = MomentStore.open(store, version, storage_options)
    shown = status_of(opened)
    if model is not None:
        with running(session) as (cluster, progress):
            shown = replace(shown, drift=drift_since(opened, model, cluster, progress))
    if json_output:
        print_json(as_json(shown))
    else:
        print_status(console(), shown)


@click.command()
@store_argument
@shards_argument
@click.option(
    "--output", required=True, type=Url(signed=False), help="Folder for one Parquet file a shard."
)
@click.option("--model", "name", help="Name of the model [the latest].")
@click.option(
    "--method",
    type=click.Choice(["fixed-point", "gibbs"]),
    default="fixed-point",
    show_default=True,
)
@click.option("--seed", type=SEED, help="Of the Gibbs sampler.")
@limit_options
@cluster_options
@storage_option
@json_option
def transform(
    store: str,
    shards: tuple[str, ...],
    output: str,
    name: str | None,
    method: Any,
    seed: int | None,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Write the topic proportions of each document of SHARDS as Parquet."""
    opened = MomentStore.open(store, storage_options=storage_options)
    model = opened.load_model(name)
    opened = store_for(opened, model_called(opened.commit, name), model)
    listed = list_shards(shards, storage_options, opened.form.kind, tell=tell)
    with running(session) as (cluster, progress):
        result = transform_shards(
            opened,
            model,
            listed,
            output,
            cluster,
            method,
            seed,
            limits,
            storage_options,
            progress,
        )
    if json_output:
        print_json({"documents": result.documents, "files": list(result.files)})
    else:
        say(f"{result.documents:,} documents in {len(result.files)} files in {output}")

"""Commands that show what a store holds, and compute nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from streaming_moments.models.base import Model
from streaming_moments.models.latent_trees.drawing import as_svg
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.command_line.options import (
    Session,
    cluster_options,
    console,
    json_option,
    print_json,
    running,
    storage_option,
    store_argument,
    words_option,
)
from streaming_moments.pipelines.option_types import Share
from streaming_moments.pipelines.reports.status import print_status, since_text, status_of
from streaming_moments.pipelines.reports.tables import (
    RELEVANCE_WEIGHT,
    as_json,
    described_as_json,
    documents_of,
    log_lines,
    model_scores,
    periods_as_json,
    print_log,
    print_periods,
    print_topics,
    scores_line,
    together_line,
    topic_lines,
)
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.dates import PERIODS, Period
from streaming_moments.storage.operations.growth import AddedWords, added_words
from streaming_moments.storage.operations.lineages import store_for, vocabulary_of
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.storage.operations.shares_over_time import PeriodShares


@click.command()
@store_argument
@storage_option
@json_option
def log(store: str, storage_options: dict[str, Any] | None, json_output: bool) -> None:
    """Show the commits of STORE, the latest first, and where its history begins."""
    opened = MomentStore.open(store, storage_options=storage_options)
    lines, expired = log_lines(opened), opened.commit.expired
    if json_output:
        commits = [as_json(line) for line in lines]
        print_json({"commits": commits, "expired": [list(pair) for pair in expired]})
        return
    print_log(console(), lines)
    if expired:
        begins = opened.commit.kept[0][0]
        gone = ", ".join(f"{one} to {last}" if one < last else f"{one}" for one, last in expired)
        say(f"the history begins with version {begins}; no longer kept: {gone}")


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
        from streaming_moments.pipelines.jobs.measure_drift import drift_since

        with running(session) as run:
            shown = replace(shown, drift=drift_since(opened, model, run))
    if json_output:
        print_json(as_json(shown))
    else:
        print_status(console(), shown)


@click.command()
@store_argument
@click.option("--model", "name", help="Name of the model [the latest].")
@words_option
@click.option(
    "--relevance",
    "weight",
    metavar="LAMBDA",
    type=Share(),
    default=RELEVANCE_WEIGHT,
    show_default=True,
    help="Ranks words: 1 by probability in the topic, 0 by how much more probable than elsewhere.",
)
@click.option(
    "--over-time",
    "period",
    type=click.Choice(PERIODS),
    help="Also the share of each topic in the documents of each of these, from the counts kept.",
)
@click.option(
    "--plot",
    "plot_file",
    help="With --over-time: draw the shares into this file; a latent tree: itself, as SVG.",
)
@storage_option
@json_option
def topics(
    store: str,
    name: str | None,
    words: int,
    weight: float,
    period: Period | None,
    plot_file: str | None,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show the topics of a model of STORE."""
    opened = MomentStore.open(store, storage_options=storage_options)
    model = opened.load_any_model(name)
    if plot_file is not None and isinstance(model, LatentTree):
        from streaming_moments.pipelines.reports.plot import write_svg

        write_svg(as_svg(model), plot_file)
    elif plot_file is not None:
        if period is None:
            raise click.UsageError("--plot draws what --over-time asks for; give both.")
        from streaming_moments.pipelines.reports.plot import plot_shares, require_plot

        require_plot(plot_file)
    chosen, said = model_called(opened.commit, name), model.described()
    lines, scores, sentences = [], {}, [said.sentence]
    if isinstance(model, TopicModel):
        lines = topic_lines(model, vocabulary_of(opened, model), words, weight)
        scores = model_scores(model)
        sentences = [*filter(None, (scores_line(model), together_line(model))), said.sentence]
    shown = {word for line in lines for word in line.words}
    later = {word: part for word, part in _later(opened, chosen, model).items() if word in shown}
    over_time: tuple[PeriodShares, ...] = ()
    if period is not None:
        from streaming_moments.storage.operations.shares_over_time import shares_over_time

        topical = opened.load_model(name)
        over_time = shares_over_time(store_for(opened, chosen, topical), topical, period)
    if plot_file is not None and over_time:
        plot_shares(over_time, plot_file)
    if json_output:
        print_json(
            {
                "store": opened.url,
                "model": chosen,
                **described_as_json(model),
                "relevance": weight,
                **scores,
                "topics": [as_json(line) for line in lines],
                "counted_since": {word: part.version for word, part in later.items()},
                **({} if period is None else {"over_time": periods_as_json(over_time)}),
            }
        )
        return
    title = f"model {chosen} of {documents_of(model)}"
    if said.picture:
        say(title, *said.picture.splitlines())
    else:
        print_topics(console(), lines, title, weight, later, said.columns)
    for part in sorted(set(later.values()), key=lambda part: part.version):
        since = [word for word, own in later.items() if own == part]
        say(f"* counted since {since_text(part)}: {', '.join(sorted(since))}")
    if period is not None:
        print_periods(console(), over_time)
    say("", *sentences)


def _later(store: MomentStore, name: str, model: Model) -> dict[str, AddedWords]:
    """Words of a model that came later than the others."""
    fitted = store_for(store, name, model)
    terms = fitted.vocabulary.terms
    return {
        word: part
        for part in added_words(fitted.commit.lineage, len(terms))
        for word in terms[part.first : part.first + part.words]
    }

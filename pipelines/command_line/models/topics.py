"""The command that shows a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from streaming_moments.models.base import Model
from streaming_moments.models.latent_trees.drawing import as_svg
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.pipelines.command_help import GroupedCommand, OneOf
from streaming_moments.pipelines.command_line.shared_options import (
    console,
    json_option,
    print_json,
    storage_option,
    store_argument,
    words_option,
)
from streaming_moments.pipelines.option_types import Share
from streaming_moments.pipelines.reports.model_pages.printed_model import (
    print_model,
    print_origin_shares,
)
from streaming_moments.pipelines.reports.model_pages.registry import model_view, shown_of
from streaming_moments.pipelines.reports.period_changes import changes_said
from streaming_moments.pipelines.reports.status import stale_as_json, stale_line
from streaming_moments.pipelines.reports.tables import (
    RELEVANCE_WEIGHT,
    periods_as_json,
    records_of,
)
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.dates import PERIODS, Period
from streaming_moments.storage.operations.growth import AddedWords, added_words
from streaming_moments.storage.operations.lineages import store_counting, store_for
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.storage.merging.origin_shares import OriginShares
    from streaming_moments.storage.operations.shares_over_time import PeriodShares


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments topics store --model published --words 15",
        "streaming-moments topics store --over-time month --plot shares.png",
    ),
)
@store_argument
@click.option("--model", "name", metavar="NAME", help="Name of the model [the latest].")
@words_option
@click.option(
    "--relevance",
    "weight",
    metavar="LAMBDA",
    type=Share(),
    default=RELEVANCE_WEIGHT,
    show_default=True,
    help="How words are ranked. 1: by probability in the topic; 0: by how much more probable they "
    "are in the topic than overall.",
)
@click.option(
    "--over-time",
    "period",
    type=OneOf(PERIODS),
    help="Also show the share of each topic in each period of this length.",
)
@click.option(
    "--by-origin",
    "by_origin",
    is_flag=True,
    help="For a hub: also show the share of each topic at each origin. With --over-time, also show "
    "how the shares at each origin change.",
)
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE",
    help="With --over-time: draw the shares of topics to this file. For a latent tree: draw the "
    "tree to this file, as SVG.",
)
@storage_option
@json_option
def topics(
    store: str,
    name: str | None,
    words: int,
    weight: float,
    period: Period | None,
    by_origin: bool,
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
            raise click.UsageError("--plot draws the shares of --over-time; give both.")
        from streaming_moments.pipelines.reports.plot import plot_shares, require_plot

        require_plot(plot_file)
    chosen = model_called(opened.commit, name)
    stale = staleness(opened, chosen)
    view: Any = model_view(opened, model, words, weight, opened.models[chosen].labels)
    warnings = [*view.lacks, *(f"warning: {one}" for one in view.described.cautions)]
    warnings += [f"warning: {stale_line(stale)}"] * stale.is_stale
    source = opened.models[chosen].source
    known = {"store": opened.url, "model": chosen, **stale_as_json(stale)}
    title = f"model {chosen} of {records_of(model)}"
    if source is not None:
        known |= {"fitted_by": source.url, "fitted_there_as": source.name}
        title += f", fitted as {source.name} by {source.url}"
    if shown_of(model).periods is None:
        if period is not None or by_origin:
            option = "--over-time" if period is not None else "--by-origin"
            raise click.UsageError(
                f"{option} needs a model of topics; model {chosen} is of type {model.name}."
            )
        if json_output:
            print_json({**known, **view.as_json, **view.scores})
            return
        print_model(console(), view, title, warnings)
        return
    shown = {word for line in view.lines for word in line.words}
    later = {word: part for word, part in _later(opened, chosen, model).items() if word in shown}
    over_time: tuple[PeriodShares, ...] = ()
    if period is not None:
        from streaming_moments.storage.operations.shares_over_time import shares_over_time

        topical = opened.load_model(name)
        over_time = shares_over_time(store_counting(opened, chosen, topical), topical, period)
    origins: tuple[OriginShares, ...] = ()
    changes: dict[str, tuple[PeriodShares, ...]] = {}
    if by_origin:
        from streaming_moments.storage.merging.origin_shares import only_of, shares_by_origin

        topical = opened.load_model(name)
        counted = store_counting(opened, chosen, topical)
        origins = shares_by_origin(counted, topical)
        if period is not None:
            named = [one.origin for one in origins]
            changes = {
                one: shares_over_time(only_of(counted, one), topical, period) for one in named
            }
    if plot_file is not None and over_time:
        plot_shares(over_time, view.names, plot_file)
    if json_output:
        print_json(
            {
                **known,
                **view.as_json,
                **view.scores,
                "relevance": weight,
                "counted_since": {word: part.version for word, part in later.items()},
                **({} if period is None else {"over_time": periods_as_json(over_time)}),
                **({"by_origin": _origins_as_json(origins, changes)} if by_origin else {}),
            }
        )
        return
    print_model(console(), view, title, warnings, later, None if period is None else over_time)
    if by_origin:
        print_origin_shares(console(), origins)
        say(*changes_said(changes, view.names))


def _origins_as_json(
    origins: Sequence[OriginShares], changes: Mapping[str, Sequence[PeriodShares]]
) -> list[dict[str, Any]]:
    return [
        {
            **asdict(one),
            **({"over_time": periods_as_json(changes[one.origin])} if changes else {}),
        }
        for one in origins
    ]


def _later(store: MomentStore, name: str, model: Model) -> dict[str, AddedWords]:
    """Return words of a model that were added to the vocabulary after the store was created."""
    fitted = store_for(store, name, model)
    terms = fitted.vocabulary.terms
    return {
        word: part
        for part in added_words(fitted.commit.lineage, len(terms))
        for word in terms[part.first : part.first + part.words]
    }

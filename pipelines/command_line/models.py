"""Commands that ask how many topics, and which."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.models.base import Model
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.command_line.model_options import method_options, refine_option
from streaming_moments.pipelines.command_line.options import (
    Alphas,
    Session,
    TopicNumbers,
    cluster_options,
    console,
    json_option,
    print_json,
    running,
    storage_option,
    store_argument,
    window_options,
    words_option,
)
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.jobs.select import select as select_topics
from streaming_moments.pipelines.option_types import Share
from streaming_moments.pipelines.reports.plot import plot, plot_shares, require_plot
from streaming_moments.pipelines.reports.status import since_text
from streaming_moments.pipelines.reports.tables import (
    RELEVANCE_WEIGHT,
    as_json,
    described_as_json,
    documents_of,
    model_scores,
    periods_as_json,
    print_periods,
    print_selection,
    print_topics,
    scores_line,
    together_line,
    topic_lines,
    window_as_json,
)
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.dates import PERIODS, Period
from streaming_moments.storage.operations.growth import AddedWords, added_words
from streaming_moments.storage.operations.lineages import store_for, vocabulary_of
from streaming_moments.storage.operations.shares_over_time import PeriodShares, shares_over_time
from streaming_moments.storage.operations.windows import Window, windowed
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


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
@click.option("--plot", "plot_file", help="With --over-time: draw the shares into this file.")
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
    if plot_file is not None:
        if period is None:
            raise click.UsageError("--plot draws what --over-time asks for; give both.")
        require_plot(plot_file)
    opened = MomentStore.open(store, storage_options=storage_options)
    model = opened.load_any_model(name)
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


@click.command()
@store_argument
@click.option(
    "--topics",
    "numbers",
    type=TopicNumbers(),
    required=True,
    help="Numbers of topics: 2-32, 2-32:5 (steps of 5) or 5,10,20.",
)
@click.option(
    "--alpha0",
    "alphas",
    type=Alphas(),
    multiple=True,
    default=["0.1"],
    help="One or several, as 0,0.1,1; repeatable. 0: one topic a document. [0.1]",
)
@method_options
@refine_option
@click.option("--version", type=int, help="Version to fit [the latest].")
@window_options
@click.option("--plot", "plot_file", help="Draw coherence and spectrum into this file, as PNG.")
@cluster_options
@storage_option
@json_option
def select(
    store: str,
    numbers: tuple[int, ...],
    alphas: tuple[tuple[float, ...], ...],
    method: Any,
    seed: int,
    refine: int,
    version: int | None,
    window: Window,
    plot_file: str | None,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Compare numbers of topics on STORE by coherence and by pairs held out; keeps no model.

    Mean NPMI over 10 words (the best is marked), mean UMass over 10 words and over 20 as in the
    paper, log likelihood of the pairs of words of each half of the documents by topics of the
    other one, captured spectrum, weight of the smallest topic, and seconds of work for each number
    alone: reading and slices are shared by all. Of numbers that differ by noise the smallest is
    taken: by more the halves do not agree either.
    """
    every = [alpha0 for listed in alphas for alpha0 in listed]
    if plot_file is not None:
        require_plot(plot_file)
    opened = MomentStore.open(store, version, storage_options)
    source = windowed(opened, window)
    with running(session) as run:
        selection = select_topics(source, numbers, every, run, method, seed, refine)
    if plot_file is not None:
        plot(selection, plot_file)
    best = selection.best
    if json_output:
        print_json(
            {
                "store": opened.url,
                "version": opened.version,
                "method": method,
                "seed": seed,
                "refine": refine,
                **window_as_json(window),
                "seconds": selection.seconds,
                "best": None if best is None else as_json(best),
                "taken": None if not selection.likely else as_json(selection.likely[0]),
                "noise": selection.noise,
                "why": selection.why,
                "candidates": [as_json(one) for one in selection.candidates],
                "plot": plot_file,
            }
        )
        return
    print_selection(console(), selection)
    options = "" if method == "joint" else f" --method {method}"
    options += "" if refine == ROUNDS else f" --refine {refine}"
    for name, value in window_as_json(window).items():
        options += "" if value is None else f" --{name.replace('_', '-')} {value}"
    if best is None:
        say(
            "",
            "coherence is missing: the store keeps no co-document counts (create it without "
            "--no-codocuments)",
        )
    else:
        say("", f"best by NPMI: {_refit(store, best, options)}")
    if selection.likely:
        say(f"{selection.why}: {_refit(store, selection.likely[0], options)}")
    say(f"{selection.seconds:.1f} seconds in all{f'; {plot_file}' if plot_file else ''}")


def _refit(store: str, one: Candidate, options: str) -> str:
    return (
        f"streaming-moments refit {store} --topics {one.n_topics} --alpha0 {one.alpha0:g}{options}"
    )

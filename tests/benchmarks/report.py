"""Tables, ratios and files from the measurements."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from pathlib import Path
from statistics import median

import psutil
from corpora import Planted
from hidden.beside import HIDDEN_CAPTION, beside_table
from hidden.listing import TIMED
from lines import Lines, captioned
from measure import Measurement
from ours import OURS
from programme import JOINT, WEIGHTS, Programme
from rich.console import Console
from rivals import TomotopyLda
from runs import PLANTED_CAPTION, REAL_CAPTION, Runs, planted_table, real_table, runs_of
from scaling import TIGHT_MEMORY

PACKAGES = (
    "streaming-moments",
    "numpy",
    "scipy",
    "numba",
    "dask",
    "gensim",
    "scikit-learn",
    "tomotopy",
    "bitermplus",
    "tensorly",
    "hmmlearn",
    "igraph",
    "networkx",
    "pomegranate",
    "statsmodels",
)
SCALING_NAMES = ("update ", "store ", "text ", "triple ", "compare ")
SCALING_NAMES += ("traffic, ", "small shards, ", "killed", "many, ")
# The peer that ours is measured by: the longest chain of Gibbs sampling.
CHAIN = TomotopyLda(1000).name

SCALING_CAPTION = (
    "Outside the clock of an update: the start of the cluster, create, loading compiled kernels. "
    "Refit: three times, in sum. Useful GFLOP/s: one triangle of each product. Traffic: bytes that "
    "come to the worker which receives most, beside 1.2 state (W - 1) / W a group; its seconds say "
    "nothing where the cores are fewer than the threads. Processor time of small shards: of client "
    "and scheduler, heartbeats apart. Many: create, update and refit, after the shards are drawn."
)
RATIO_CAPTION = (
    f"Gibbs: {CHAIN}; of planted corpora the best of its runs, of real ones the median. Above 1: "
    "we err more, predict worse, or take longer."
)


@dataclass(frozen=True)
class Machine:
    """What the measurements ran on."""

    cpu: str
    cores: int
    memory_bytes: int
    python: str
    system: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> Machine:
        return cls(
            _cpu_name(),
            os.cpu_count() or 1,
            psutil.virtual_memory().total,
            platform.python_version(),
            platform.platform(),
            {one.name: one.version for one in distributions() if one.name in PACKAGES},
        )


@dataclass(frozen=True)
class Report:
    """A run of the benchmark.

    Parameters
    ----------
    machine : Machine
        Where.
    programme : Programme
        What was to be measured.
    limit : float
        Seconds allowed to each measurement.
    measurements : tuple of Measurement
        In the order in which they were made; with --repeat several of one name.
    """

    machine: Machine
    programme: Programme
    limit: float
    measurements: tuple[Measurement, ...]

    def tables(self) -> list[Lines]:
        """All tables that have a row."""
        planted = [planted_table(c.title, self._runs(c.name)) for c in self._all_planted()]
        real = [real_table(name, self._runs(name)) for name in self.programme.real_names()]
        return [
            *captioned(real, REAL_CAPTION),
            *captioned(planted, PLANTED_CAPTION),
            *captioned(self._hidden(), HIDDEN_CAPTION),
            *captioned([self._scaling()], SCALING_CAPTION),
            *captioned([self._ratios()], RATIO_CAPTION),
        ]

    def print(self, console: Console) -> None:
        for lines in self.tables():
            console.print(lines.rich(), "")
        for line in self.notes():
            console.print(line)

    def write(self, folder: Path) -> None:
        """`bench.json` with all raw figures, `bench.md` ready to paste."""
        content = {
            "machine": asdict(self.machine),
            "limit": self.limit,
            "documents": self.programme.documents,
            "topics": self.programme.topics,
            "seeds": self.programme.seeds,
            "starts": self.programme.starts,
            "know_eta": self.programme.know_eta,
            "measurements": [asdict(measured) for measured in self.measurements],
            "ratios": dict(self.ratios()),
            "left_out": [asdict(left) for left in self.programme.left_out()],
        }
        (folder / "bench.json").write_text(json.dumps(content, indent=1) + "\n")
        parts = [lines.markdown() for lines in self.tables()]
        notes = "\n".join(f"- {line}" for line in self.notes())
        (folder / "bench.md").write_text("\n".join(parts) + "\n" + notes + "\n")

    def notes(self) -> list[str]:
        """Machine, versions, what was left out, what ran into the limit or failed."""
        machine = self.machine
        versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
        loads = [measured.load for measured in self.measurements]
        lines = [
            f"{machine.cpu}, {machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB; "
            f"Python {machine.python}; {versions}",
        ]
        if loads:
            lines.append(
                f"load average before each measurement: median {median(loads):.1f}, "
                f"at most {max(loads):.1f}"
            )
        lines += [
            f"left out: {left.name} ({left.reason})"
            for left in self.programme.left_out()
            if self._runs(left.name.partition(": ")[0])
        ]
        for measured in self.measurements:
            if measured.outcome == "failed":
                lines.append(f"failed: {measured.name}: {measured.error}")
        return lines

    def ratios(self) -> Iterable[tuple[str, float]]:
        """The figures that one asks for, by name."""
        for corpus in self._all_planted():
            yield from self._against_chain(corpus.name, "error", min, 5)
            yield from self._lengths(corpus.name)
            first = self._seconds(f"{corpus.name}: {JOINT.name}")
            again = self._seconds(f"{corpus.name}: {JOINT.name} (again)")
            if first and again:
                yield f"{corpus.name}: drift, seconds at the end / at the beginning", again / first
            yield from self._memory(corpus.name)
        for name in self.programme.real_names():
            yield from self._against_chain(name, "perplexity_alike", median, 10)
            yield from self._coherence(name)
        yield from self._scaling_ratios()

    def _against_chain(
        self, corpus: str, figure: str, of: Callable[[list[float]], float], times: int
    ) -> Iterable[tuple[str, float]]:
        """Ours over a chain of Gibbs sampling: a figure, and so many times the seconds."""
        runs = {one.setting: one for one in self._runs(corpus)}
        chain = runs.get(CHAIN)
        if chain is None or not chain.done:
            return
        for ours in (one for one in runs.values() if one.setting.startswith(OURS) and one.done):
            value = ours.middle(figure)
            if value is not None and "again" not in ours.setting:
                name = f"{corpus}: {ours.setting} / Gibbs"
                yield f"{name}, {figure}", value / of(chain.values(figure))
                yield f"{name}, {times} x seconds", times * ours.seconds / chain.seconds

    def _coherence(self, corpus: str) -> Iterable[tuple[str, float]]:
        """How much more coherent, and how much nearer to labels, than the median of peers."""
        runs = self._runs(corpus)
        ours = next((one for one in runs if one.setting == JOINT.name), None)
        for one in runs if ours is not None else []:
            for figure in ("npmi", "agreement"):
                mine, other = ours.middle(figure), one.middle(figure)
                if not one.setting.startswith(OURS) and mine is not None and other is not None:
                    yield f"{corpus}: {figure}, {ours.setting} - {one.setting}", mine - other

    def _lengths(self, corpus: str) -> Iterable[tuple[str, float]]:
        """Length weights over pooled moments."""
        runs = {one.setting: one.middle("error") for one in self._runs(corpus)}
        for even, pooled in zip(WEIGHTS, WEIGHTS[len(WEIGHTS) // 2 :], strict=False):
            one, other = runs.get(even.name), runs.get(pooled.name)
            if one and other:
                yield f"{corpus}: error, {even.name} / {pooled.name}", one / other

    def _memory(self, corpus: str) -> Iterable[tuple[str, float]]:
        for name in self._names(f"{corpus}: {OURS} from Parquet"):
            ours = self._one(name)
            if ours is not None and ours.outcome == "done":
                held = max(ours.peak_bytes, ours.child_peak_bytes)
                projected = ours.figures["projected_bytes"]
                yield f"{name}: peak / planned memory of the largest process", held / projected

    def _scaling_ratios(self) -> Iterable[tuple[str, float]]:
        for corpus in self.programme.planted():
            one = self._seconds(f"update {corpus.name}, 1 x 1 thread")
            two = self._seconds(f"update {corpus.name}, 2 x 1 thread")
            if one and two:
                yield f"update {corpus.name}: one worker process / two, seconds", one / two
        text = self.programme.texts().name
        alone = self._seconds(f"text of {text}, reading alone")
        whole = self._seconds(f"text of {text}, update")
        if alone and whole:
            yield "text: seconds of reading alone / of the update", alone / whole
            yield "text: seconds of the statistics / of reading alone", (whole - alone) / alone
        for threads in ("1 thread", "2 threads"):
            corpus = self.programme.planted()[0].name
            kernel = self._one(f"triple kernel on {corpus}, {threads}")
            if kernel is not None and kernel.outcome == "done":
                useful = kernel.figures["useful_gflops"] / kernel.figures["dense_gflops"]
                yield f"triple kernel, {threads}: useful GFLOP/s / dense matmul", useful
        yield from self._sizes()

    def _sizes(self) -> Iterable[tuple[str, float]]:
        """The largest corpus against the smallest."""
        few, many = self.programme.documents[0], self.programme.documents[-1]
        if few == many:
            return
        k, most = self.programme.topics[0], self.programme.topics[-1]
        for budget in ("", f", {TIGHT_MEMORY >> 20} MiB"):
            pair = [
                self._one(f"update planted-{n}-k{k}, 1 x 1 thread{budget}") for n in (few, many)
            ]
            small, large = pair
            if small is None or large is None or {small.outcome, large.outcome} != {"done"}:
                continue
            what = f"update, {many:,} / {few:,} documents{budget}"
            yield f"{what}: seconds", large.seconds / small.seconds
            peaks = [one.figures["worker_peak_bytes"] for one in (small, large)]
            yield f"{what}: peak memory of the worker", peaks[1] / peaks[0]
        stores = [self._one(f"store of planted-{n}-k{most}") for n in (few, many)]
        if all(one is not None and one.outcome == "done" for one in stores):
            times = [one.figures["refit_median"] for one in stores if one is not None]
            yield f"refit, {many:,} / {few:,} documents: seconds", times[1] / times[0]

    def _hidden(self) -> list[Lines]:
        sources = self.programme.hidden.sources()
        return [beside_table(source, self._runs(source.name)) for source in sources]

    def _scaling(self) -> Lines:
        rows = []
        for prefix in (*SCALING_NAMES, *TIMED):
            for name in self._names(prefix):
                measured = self._one(name)
                if measured is None:
                    continue
                stages = ", ".join(f"{a} {b:.2f} s" for a, b in measured.stages.items())
                figures = ", ".join(
                    f"{a.removesuffix('_bytes')} {b / 1e6:,.0f} MB"
                    if a.endswith("_bytes")
                    else f"{a} {b:,.4g}"
                    for a, b in measured.figures.items()
                )
                rows.append((name, stages if measured.outcome == "done" else "-", figures))
        return Lines(
            "Scaling",
            ("measurement", "seconds", "figures"),
            tuple(rows),
        )

    def _ratios(self) -> Lines:
        return Lines(
            "Ratios",
            ("", "ratio"),
            tuple((name, f"{value:.3g}") for name, value in self.ratios()),
        )

    def _all_planted(self) -> list[Planted]:
        """Beside peers, and of unlike lengths; each once."""
        every = (*self.programme.planted(), *self.programme.spreads())
        return list({corpus.name: corpus for corpus in every}.values())

    def _runs(self, corpus: str) -> list[Runs]:
        return runs_of(self.measurements, corpus)

    def _names(self, prefix: str) -> list[str]:
        names = [measured.name for measured in self.measurements]
        return [name for name in dict.fromkeys(names) if name.startswith(prefix)]

    def _one(self, name: str) -> Measurement | None:
        """The measurement of median seconds of that name."""
        some = [measured for measured in self.measurements if measured.name == name]
        some.sort(key=lambda measured: (measured.outcome != "done", measured.seconds))
        done = [measured for measured in some if measured.outcome == "done"] or some
        return done[(len(done) - 1) // 2] if done else None

    def _seconds(self, name: str) -> float:
        """Median seconds, 0 where there is none."""
        found = self._one(name)
        return found.seconds if found is not None and found.outcome == "done" else 0.0


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

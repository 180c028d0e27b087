"""Tables, ratios and files from the measurements."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

import psutil
from measure import Measurement
from programme import Programme
from rich.console import Console
from rich.table import Table
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
    "tensorly",
)
PEER_NAMES = ("gensim", "scikit-learn", "tomotopy")
OURS = "this project"
SCALING_NAMES = ("update ", "store ", "text ", "triple ", "compare ")
SCALING_NAMES += ("traffic, ", "small shards, ", "killed", "many, ")
# A peer counts as as good as we are up to so many times our error.
ERROR_FACTOR = 1.5

PLANTED_CAPTION = (
    "Error: mean L1 distance of matched topics, 0 to 2. In the clock: from counts in memory, in "
    "each method's own input format, to fitted topics; for 'from Parquet' all from the start of "
    "the cluster: create, update, refit. Outside: imports, converting the counts, reading the "
    "topics out, and for the others reading the corpus. All use both cores and know the true "
    "number of topics and the true alpha; peers also the true mean of eta. Methods 'on our "
    "whitened moments' include gathering our statistics. CPU s: of all processes and threads, "
    "waiting of BLAS threads included. Peak: largest resident size of the process, imports "
    "and input included, and after + that of its largest child process (a forked child shares "
    "pages with its parent). Planned: bound computed before the run for a worker process."
)
REAL_CAPTION = (
    "Trained on four fifths of the documents. NPMI and UMass: 10 top words of each topic, on the "
    "training documents. Perplexity: half of each held-out document's tokens scored, the "
    "proportions inferred from the other half by TopicModel.transform with each method's topics "
    "and alpha; all topics of all methods mixed with 1% of the training word frequencies (one "
    "added to each count). Peers take their own recommended alpha and eta, ours alpha0 0.3."
)

SCALING_CAPTION = (
    "Outside the clock of an update: the start of the cluster, create, loading compiled kernels. "
    "Refit: three times, in sum. Useful GFLOP/s: one triangle of each product. Traffic: bytes that "
    "come to the worker which receives most, beside 1.2 state (W - 1) / W a group; its seconds say "
    "nothing where the cores are fewer than the threads. Processor time of small shards: of client "
    "and scheduler, heartbeats apart. Many: create, update and refit, after the shards are drawn."
)
RATIO_CAPTION = (
    f"Peer: the fastest setting of a peer with at most {ERROR_FACTOR} times our error; no row "
    "where there is none."
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
            {name: version(name) for name in PACKAGES},
        )


@dataclass(frozen=True)
class Lines:
    """A table as plain cells.

    Parameters
    ----------
    title : str
        Above it.
    columns : tuple of str
        The first is text, the others numbers.
    rows : tuple of tuple of str
        Cells.
    caption : str
        Below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def rich(self) -> Table:
        table = Table(title=self.title, caption=self.caption, title_justify="left", show_edge=False)
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rule = " | ".join("---:" if place else "---" for place in range(len(self.columns)))
        lines = [f"| {' | '.join(self.columns)} |", f"| {rule} |"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n\n{self.caption}\n"


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
        planted = [self._planted(corpus.name) for corpus in self.programme.planted()]
        real = [self._real(name) for name in ("reuters", "sotu")]
        return [
            *_captioned(planted, PLANTED_CAPTION),
            *_captioned(real, REAL_CAPTION),
            *_captioned([self._scaling()], SCALING_CAPTION),
            *_captioned([self._ratios()], RATIO_CAPTION),
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
        lines += [f"left out: {left.name} ({left.reason})" for left in self.programme.left_out()]
        for measured in self.measurements:
            if measured.outcome == "failed":
                lines.append(f"failed: {measured.name}: {measured.error}")
        return lines

    def ratios(self) -> Iterable[tuple[str, float]]:
        """The figures that one asks for, by name."""
        for corpus in self.programme.planted():
            yield from self._against_peers(corpus.name)
            first = self._seconds(f"{corpus.name}: this project from counts, joint")
            again = self._seconds(f"{corpus.name}: this project from counts, joint (again)")
            if first and again:
                yield f"{corpus.name}: drift, seconds at the end / at the beginning", again / first
            yield from self._memory(corpus.name)
        yield from self._scaling_ratios()

    def _against_peers(self, corpus: str) -> Iterable[tuple[str, float]]:
        peers = [
            self._one(name)
            for name in self._names(f"{corpus}: ")
            if method_of(name).startswith(PEER_NAMES)
        ]
        for kind in ("from counts, joint", "from Parquet, embedded"):
            ours = self._one(f"{corpus}: {OURS} {kind}")
            if ours is None or ours.outcome != "done" or not ours.seconds:
                continue
            error = ours.figures["error"]
            yield f"{corpus}: our topic error, {kind}", error
            done = [peer for peer in peers if peer is not None and peer.outcome == "done"]
            if done:
                least = min(done, key=lambda peer: peer.figures["error"])
                name = f"{corpus}: least error of a peer ({method_of(least.name)}) / ours {kind}"
                yield name, least.figures["error"] / error
                yield f"{corpus}: its seconds / ours {kind}", least.seconds / ours.seconds
            good = [peer for peer in done if peer.figures["error"] <= ERROR_FACTOR * error]
            if good:
                best = min(good, key=lambda peer: peer.seconds)
                name = f"{corpus}: {method_of(best.name)} seconds / ours {kind}"
                yield name, best.seconds / ours.seconds

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

    def _planted(self, corpus: str) -> Lines:
        rows = []
        for name in self._names(f"{corpus}: "):
            measured = self._one(name)
            if measured is None:
                continue
            error = measured.figures.get("error")
            projected = measured.figures.get("projected_bytes")
            cpu = _cell(measured.cpu_seconds or None, 1)
            cells = (
                method_of(name),
                _seconds(measured),
                cpu,
                _cell(error, 3),
                _peak(measured),
            )
            rows.append((*cells, _megabytes(projected) if projected else ""))
        columns = ("method", "seconds", "CPU s", "topic error", "peak, MB", "planned, MB")
        return Lines(title_of(corpus), columns, tuple(rows))

    def _real(self, corpus: str) -> Lines:
        rows = []
        for name in self._names(f"{corpus}: "):
            measured = self._one(name)
            if measured is None:
                continue
            figures = measured.figures
            rows.append(
                (
                    method_of(name),
                    _seconds(measured),
                    _cell(figures.get("npmi"), 3),
                    _cell(figures.get("umass"), 1),
                    _cell(figures.get("perplexity"), 0),
                )
            )
        columns = ("method", "seconds", "NPMI", "UMass", "perplexity")
        titles = {"reuters": "Reuters (395 documents)", "sotu": "State of the Union passages"}
        return Lines(f"{titles[corpus]}, 20 topics", columns, tuple(rows))

    def _scaling(self) -> Lines:
        rows = []
        for prefix in SCALING_NAMES:
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


def _captioned(tables: Sequence[Lines], caption: str) -> list[Lines]:
    """Tables that have a row; the last carries the caption of all."""
    shown = [lines for lines in tables if lines.rows]
    return [*shown[:-1], *(replace(lines, caption=caption) for lines in shown[-1:])]


def method_of(name: str) -> str:
    return name.partition(": ")[2]


def title_of(corpus: str) -> str:
    _, documents, topics = corpus.split("-")
    return f"{int(documents):,} documents, 10,000 words, {topics[1:]} topics"


def _seconds(measured: Measurement) -> str:
    if measured.outcome == "limit":
        return f"> {measured.seconds:g}"
    return f"{measured.seconds:.1f}" if measured.outcome == "done" else "failed"


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _peak(measured: Measurement) -> str:
    if measured.outcome != "done":
        return ""
    children = f" + {_megabytes(measured.child_peak_bytes)}" if measured.child_peak_bytes else ""
    return f"{_megabytes(measured.peak_bytes)}{children}"


def _megabytes(nbytes: float) -> str:
    return f"{nbytes / 1e6:,.0f}"


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

"""Plots: coherence and captured spectrum of `select`, and shares of topics over time."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from streaming_moments import plots
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.candidates import Candidate, Selection
from streaming_moments.printing.extras import needs
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.storage.files.local_files import write_whole
from streaming_moments.storage.operations.shares_over_time import PeriodShares


def require_plot(file: str) -> None:
    """Raise InvalidInput, before any work, if the file of the plot cannot be written."""
    figure = _matplotlib("figure").Figure()
    canvas = _matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    path = Path(file)
    kinds = sorted(canvas.get_supported_filetypes())
    if path.suffix.removeprefix(".").lower() not in kinds:
        raise InvalidInput(
            f"{file} is not a plot file; end its name with one of .{', .'.join(kinds)}"
        )
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise InvalidInput(f"{file} cannot be written; give a file in a folder that exists")


def plot(selection: Selection, file: str) -> None:
    """Plot the scores of candidates, one line for each alpha0; errors as in `require_plot`."""
    shown = [("captured", "captured spectrum")]
    if selection.coherent:
        drawn = [(one, one.compared[-1]) for one in COHERENCES.values()]
        shown = [
            *((one.columns[words][0], f"mean {one.name}, {words} words") for one, words in drawn),
            *shown,
        ]
    held_out = [("predicted", f"held-out log-likelihood of {selection.held}")]
    if selection.number == "topics":
        shown += held_out * bool(selection.likely)
    else:
        shown = held_out
    fitted = [one for one in selection.candidates if not one.refusal]
    figure = _matplotlib("figure").Figure(figsize=(6.4, 2.6 * len(shown)), layout="constrained")
    axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, label) in zip(axes, shown, strict=True):
        for alpha0, line in _by_alpha0(fitted).items():
            numbers = [one.n_topics for one in line]
            values = [_value(one, name) for one in line]
            axis.plot(numbers, values, marker="o", markersize=3, label=f"alpha0 {alpha0:g}")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    best = selection.best
    if best is not None:
        axes[0].plot(best.n_topics, best.npmi, "k*", markersize=12, label="best")
    axes[0].legend()
    axes[-1].set_xlabel(selection.number)
    _write(figure, file)


def plot_shares(periods: Sequence[PeriodShares], names: Sequence[str], file: str) -> None:
    """Plot the shares of topics over time, a panel for each topic; errors as in `plot`."""
    names = [f"{topic} {name}" for topic, name in enumerate(names)]
    rows = -(-len(names) // 3)
    figure = _matplotlib("figure").Figure(figsize=(9.6, 1.5 * rows + 0.6), layout="constrained")
    days = [one.days.first for one in periods]
    shares, bars = [one.shares for one in periods], [one.bars for one in periods]
    plots.plot_shares(days, shares, bars, names, figure)
    _write(figure, file)


def write_svg(picture: str, file: str) -> None:
    """Write an SVG picture to a file; raise InvalidInput if its name does not end in .svg."""
    if Path(file).suffix.lower() != ".svg":
        raise InvalidInput(f"{file} is not an SVG file; end its name with .svg")
    _put(picture.encode(), file)


def _write(figure: Any, file: str) -> None:
    content = BytesIO()
    figure.savefig(content, format=Path(file).suffix.removeprefix(".").lower(), dpi=150)
    _put(content.getvalue(), file)


def _put(content: bytes, file: str) -> None:
    try:
        write_whole(str(Path(file).resolve()), content)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error}); give another file") from error


def _value(candidate: Candidate, name: str) -> float | None:
    value: float | None = (
        candidate.predicted if name == "predicted" else coherence_of(candidate, name)
    )
    return value


def _by_alpha0(candidates: Sequence[Candidate]) -> dict[float, list[Candidate]]:
    lines: dict[float, list[Candidate]] = {}
    for one in candidates:
        lines.setdefault(one.alpha0, []).append(one)
    return lines


def _matplotlib(module: str) -> Any:
    # do not use pyplot, which would open a display and hold figures in memory
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise InvalidInput(needs("--plot", "matplotlib", "plot")) from error

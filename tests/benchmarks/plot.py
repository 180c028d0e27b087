"""The picture: topic error against seconds."""

from __future__ import annotations

from pathlib import Path

from methods import setting_of
from ours import OURS
from report import Report


def plot(report: Report, path: Path) -> None:
    """Topic error against seconds, one panel a planted corpus."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    titles = {corpus.name: corpus.title for corpus in report.programme.planted()}
    points = {
        corpus: [
            measured
            for measured in report.measurements
            if measured.name.startswith(f"{corpus}: ") and measured.outcome == "done"
        ]
        for corpus in titles
    }
    shown = [corpus for corpus in titles if points[corpus]]
    if not shown:
        return
    figure, axes = pyplot.subplots(
        1, len(shown), figsize=(5 * len(shown), 4.5), squeeze=False, layout="constrained"
    )
    for axis, corpus in zip(axes[0], shown, strict=True):
        named: set[str] = set()
        for measured in points[corpus]:
            setting = setting_of(measured.name)
            ours = setting.startswith(OURS)
            axis.scatter(
                measured.seconds,
                measured.figures["error"],
                marker="o" if ours else "x",
                color="tab:red" if ours else "tab:blue",
            )
            axis.annotate(
                "" if setting in named else _short(setting),
                (measured.seconds, measured.figures["error"]),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7,
            )
            named.add(setting)
        axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="topic error (L1)")
        axis.set_title(titles[corpus], fontsize=9)
        axis.margins(x=0.25)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _short(method: str) -> str:
    return method.replace("this project ", "").replace(" on our whitened moments", "")

"""The picture: topic error against seconds."""

from __future__ import annotations

from pathlib import Path

from report import OURS, Report, method_of, title_of


def plot(report: Report, path: Path) -> None:
    """Topic error against seconds, one panel a planted corpus."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    corpora = [corpus.name for corpus in report.programme.planted()]
    points = {
        corpus: [
            measured
            for measured in report.measurements
            if measured.name.startswith(f"{corpus}: ") and measured.outcome == "done"
        ]
        for corpus in corpora
    }
    shown = [corpus for corpus in corpora if points[corpus]]
    if not shown:
        return
    figure, axes = pyplot.subplots(
        1, len(shown), figsize=(5 * len(shown), 4.5), squeeze=False, layout="constrained"
    )
    for axis, corpus in zip(axes[0], shown, strict=True):
        for measured in points[corpus]:
            ours = method_of(measured.name).startswith(OURS)
            axis.scatter(
                measured.seconds,
                measured.figures["error"],
                marker="o" if ours else "x",
                color="tab:red" if ours else "tab:blue",
            )
            axis.annotate(
                _short(method_of(measured.name)),
                (measured.seconds, measured.figures["error"]),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7,
            )
        axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="topic error (L1)")
        axis.set_title(title_of(corpus), fontsize=9)
        axis.margins(x=0.25)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _short(method: str) -> str:
    return method.replace("this project ", "").replace(" on our whitened moments", "")

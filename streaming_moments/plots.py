"""Plots by matplotlib: words of topics, scores by number of topics, shares over time, and maps.

matplotlib is imported by the first plot. A caller may give axes or a figure of any back end. If it
gives none, pyplot makes a figure, which a notebook shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.extras import needs
from streaming_moments.printing.plural import of_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

LOG_LIKELIHOOD = "held-out log-likelihood"
_ACROSS = 3  # number of panels side by side
_WIDTH = 9.6  # width of a figure, in inches
_SMALL = 8  # size of small text, in points
_MOST_BARS = 48  # with more periods than this, error bars are drawn as a band
_MOST_NUMBERS = 8  # if there are at most this many states, transitions are also written as numbers
# widths of a map to try, as multiples of the width that the centres of its circles take
_ZOOMS = (1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0)
_DRAWN: Any = {"marker": "o", "markersize": 2, "linewidth": 1, "ecolor": "black", "capsize": 2}


def names_for(names: Sequence[str] | None, number: int, noun: str) -> list[str]:
    """Return the given names as texts, or by default `noun` with a number each.

    Raises InvalidInput if the number of names is not `number`.
    """
    if names is None:
        return [f"{noun} {place}" for place in range(number)]
    if len(names) != number:
        raise InvalidInput(
            f"{of_number(len(names), 'name')} given for {of_number(number, noun)}; give one name "
            f"for each {noun}"
        )
    return [*map(str, names)]


def plot_words(
    titles: Sequence[str],
    words: Sequence[Sequence[str]],
    probabilities: Sequence[ArrayLike],
    errors: Sequence[ArrayLike] | None = None,
    figure: Figure | None = None,
    measure: str = "probability of the word in the topic (most relevant words first)",
) -> list[Axes]:
    """Draw a panel of bars for each topic: its words, the first at the top, and their errors.

    measure : label of the axis of the bars
    """
    panels = _panels(len(titles), figure, _height_of(words))
    _bars(panels, titles, words, probabilities, errors)
    panels[0].figure.supxlabel(measure, fontsize=_SMALL)
    return panels


def plot_means(
    titles: Sequence[str],
    features: Sequence[str],
    means: NDArray[np.float64],
    deviations: NDArray[np.float64],
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw a panel for each component: mean and standard deviation of each feature.

    means, deviations : (k, d), in the unit of the rows
    """
    panels = _panels(len(titles), figure, 0.2 * len(features) + 0.6, sharex=True, sharey=True)
    places = np.arange(len(features))
    for place, (axis, mean, deviation) in enumerate(zip(panels, means, deviations, strict=True)):
        axis.errorbar(mean, places, xerr=deviation, fmt="o", markersize=4, linewidth=1)
        axis.grid(alpha=0.3)
        axis.tick_params(labelsize=_SMALL, labelbottom=place + _ACROSS >= len(panels))
        _title(axis, titles[place])
    panels[0].set_yticks(places, features, fontsize=_SMALL, parse_math=False)
    # the first feature at the top
    panels[0].set_ylim(len(features) - 0.5, -0.5)
    panels[0].figure.supxlabel(
        "mean of the feature; the line is one standard deviation of the rows", fontsize=_SMALL
    )
    return panels


def plot_chain(
    transition: NDArray[np.float64],
    titles: Sequence[str],
    symbols: Sequence[Sequence[str]],
    probabilities: Sequence[ArrayLike],
    errors: Sequence[ArrayLike] | None = None,
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw the transition matrix, then a panel of bars for each state, as `plot_words` does.

    transition : (k, k) with a row for each current state
    """
    panels = _panels(1 + len(titles), figure, _height_of(symbols))
    states, first = np.arange(len(transition)), panels[0]
    first.imshow(transition, cmap="Blues", vmin=0, vmax=1)
    first.set_xticks(states)
    first.set_yticks(states)
    first.set_xlabel("next state", fontsize=_SMALL)
    first.set_ylabel("state", fontsize=_SMALL)
    first.tick_params(labelsize=_SMALL)
    if states.size <= _MOST_NUMBERS:
        for (row, column), share in np.ndenumerate(transition):
            color = "white" if share > 0.5 else "black"
            where: Any = {"ha": "center", "va": "center", "fontsize": _SMALL, "color": color}
            first.text(column, row, f"{share:.2f}", **where)
    _title(first, "probability of the next state")
    _bars(panels[1:], titles, symbols, probabilities, errors)
    panels[0].figure.supxlabel("probability of the symbol in the state", fontsize=_SMALL)
    return panels


def _height_of(words: Sequence[Sequence[str]]) -> float:
    return 0.25 * max(map(len, words)) + 0.6


def _bars(
    panels: Sequence[Axes],
    titles: Sequence[str],
    words: Sequence[Sequence[str]],
    probabilities: Sequence[ArrayLike],
    errors: Sequence[ArrayLike] | None,
) -> None:
    for place, axis in enumerate(panels):
        own = np.arange(len(words[place]))
        bars = None if errors is None else np.asarray(errors[place])
        axis.barh(own, np.asarray(probabilities[place]), xerr=bars, error_kw={"linewidth": 1})
        axis.set_yticks(own, words[place], fontsize=_SMALL, parse_math=False)
        axis.invert_yaxis()
        axis.set_xlim(left=0)
        axis.locator_params(axis="x", nbins=4)
        axis.tick_params(axis="x", labelsize=_SMALL)
        _title(axis, titles[place])


def plot_numbers(
    lines: Mapping[str, Mapping[int, float]],
    marks: Mapping[str, int],
    of: str,
    measure: str,
    noise: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measure for each number of topics or states, and mark some of these numbers.

    lines : by the label of each line, the measure for each number of topics or states
    marks : by label, the number of topics or states that it marks
    noise : drawn as a band; a difference from the best value counts only if it is larger
    """
    axis = _axis(ax)
    for label, line in lines.items():
        numbers = sorted(line)
        values = [line[number] for number in numbers]
        axis.plot(numbers, values, marker="o", markersize=3, label=label or None)
    if noise is not None:
        best = max(value for line in lines.values() for value in line.values())
        axis.axhspan(best - noise, best, color="0.5", alpha=0.2, label="within the noise")
    for (label, number), style in zip(marks.items(), ("-", "--"), strict=False):
        axis.axvline(number, color="black", linewidth=1, linestyle=style, label=label)
    axis.set(xlabel=f"number of {of}", ylabel=measure)
    axis.locator_params(axis="x", integer=True)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=_SMALL)
    return axis


def plot_shares(
    days: Sequence[Any],
    shares: ArrayLike,
    bars: ArrayLike,
    names: Sequence[str],
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw a panel for each topic: its share of the tokens in each period, and its error bar.

    If there are many periods, a band replaces the error bars. No panel shows more than
    100%.

    days : first day of each period
    shares, bars : (periods, k), from 0 to 1
    """
    from matplotlib import dates as untyped

    dates: Any = untyped
    percent, errors = 100 * np.asarray(shares), 100 * np.asarray(bars)
    panels = _panels(len(names), figure, 1.5, sharex=True, sharey=True)
    for topic, axis in enumerate(panels):
        share, error = percent[:, topic], errors[:, topic]
        if len(percent) <= _MOST_BARS:
            axis.errorbar(days, share, yerr=error, **_DRAWN)
        else:
            axis.plot(days, share, linewidth=1)
            axis.fill_between(days, share - error, share + error, alpha=0.3, linewidth=0)
        _title(axis, names[topic])
        axis.grid(alpha=0.3)
        ticks = dates.AutoDateLocator(minticks=2, maxticks=5)
        axis.xaxis.set_major_locator(ticks)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(ticks))
        axis.tick_params(labelsize=_SMALL - 1, labelbottom=topic + _ACROSS >= len(panels))
    # set the limits last: the panels share a vertical axis, which no longer adapts to data
    # afterwards
    highest = float(np.nanmax(percent + errors, initial=0.0))
    panels[0].set_ylim(0, min(1.05 * highest, 100.0) or None)
    panels[0].figure.supylabel("share of the tokens, %", fontsize=_SMALL)
    return panels


def plot_map(
    places: NDArray[np.float64],
    weights: NDArray[np.float64],
    names: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Draw a circle for each topic at its place, (k, 2), whose area is the weight of the topic.

    A name stands above its circle. Names that would overlap are moved up, with a line to their
    circles.
    """
    axis = _axis(ax)
    from matplotlib.patheffects import withStroke

    circles = axis.scatter(
        places[:, 0], places[:, 1], s=4000 * weights, alpha=0.4, edgecolors="white"
    )
    above = np.sqrt(circles.get_sizes()) / 2 + _SMALL
    drawn: Any = {"textcoords": "offset points", "ha": "center", "va": "center"}
    drawn |= {"fontsize": _SMALL, "arrowprops": {"arrowstyle": "-", "linewidth": 0.5}}
    labels: list[Any] = []
    for place, height, name in zip(places, above, names, strict=True):
        labels.append(axis.annotate(name, tuple(place), (0, height), **drawn))
        labels[-1].arrow_patch.set_visible(False)
        labels[-1].set_parse_math(False)
        # give letters a white outline, because edges of circles can cross them
        labels[-1].set_path_effects([withStroke(linewidth=2.5, foreground="white")])
        # otherwise a later layout of the figure could move circles below labels
        labels[-1].set_in_layout(False)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set(
        xticks=[],
        yticks=[],
        title="near topics have similar words; a larger circle is a larger topic",
    )
    middle, widths = (places.max(axis=0) + places.min(axis=0)) / 2, np.ptp(places, axis=0)
    widths = np.maximum(widths, widths.max() / 10 or 1.0)
    for zoom in _ZOOMS:
        # Make room around the circles by limits of the data. Margins of the axes would shrink,
        # because both axes have an equal scale.
        axis.update_datalim([middle - zoom * widths / 2, middle + zoom * widths / 2])
        axis.autoscale_view()
        _move_apart(labels, above)
        if _all_within(axis, circles, labels):
            break
    return axis


def _all_within(axis: Axes, circles: Any, labels: Sequence[Any]) -> bool:
    """Whether all circles and labels lie within the frame of the axes, in the present layout."""
    from matplotlib.text import Text

    frame, points = axis.get_window_extent(), axis.figure.dpi / 72
    centres = axis.transData.transform(circles.get_offsets())
    reach = np.sqrt(circles.get_sizes())[:, None] / 2 * points
    boxes = [Text.get_window_extent(label) for label in labels]
    lows = [*(centres - reach), *(box.min for box in boxes)]
    highs = [*(centres + reach), *(box.max for box in boxes)]
    return bool((np.array(lows) >= frame.min).all() and (np.array(highs) <= frame.max).all())


def _move_apart(labels: Sequence[Any], above: NDArray[np.float64]) -> None:
    """Move labels up, the lowest first, until none overlaps another.

    above : height of each label above the middle of its circle if no other is in its way, in points
    """
    if not labels:
        return
    from matplotlib.text import Text

    for label, height in zip(labels, above, strict=True):
        label.set_position((0, height))
    figure = labels[0].figure.canvas.figure
    # lay out the axes first, because the positions of labels depend on it
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(label) for label in labels]
    placed: list[Any] = []
    for place in sorted(range(len(labels)), key=lambda one: (boxes[one].y0, boxes[one].x0)):
        label, box = labels[place], boxes[place]
        moved = box
        while hit := [one for one in placed if one.overlaps(moved)]:
            up = max(one.y1 for one in hit) - moved.y0 + 1
            moved = moved.translated(0, up)
        placed.append(moved)
        label.set_position((0, above[place] + (moved.y0 - box.y0) * 72 / figure.dpi))
        label.arrow_patch.set_visible(moved is not box)


def _title(axis: Axes, title: str) -> None:
    # with `parse_math=False`, matplotlib does not read text between two $ as a formula
    axis.set_title(title, fontsize=_SMALL, parse_math=False)


def _panels(
    number: int, figure: Figure | None, height: float, sharex: bool = False, sharey: bool = False
) -> list[Axes]:
    """Make `number` panels, each `height` inches high, in rows of a new or given figure."""
    across = min(_ACROSS, number)
    rows = -(-number // across)
    if figure is None:
        size = (_WIDTH * across / _ACROSS, height * rows + 0.6)
        figure = _pyplot().figure(figsize=size, layout="constrained")
    elif not hasattr(figure, "subplots"):
        name = type(figure).__name__
        raise InvalidInput(f"figure is of type {name}; give a Figure of matplotlib, or none")
    axes = figure.subplots(rows, across, sharex=sharex, sharey=sharey, squeeze=False).ravel()
    for axis in axes[number:]:
        axis.set_visible(False)
    return list(axes[:number])


def _axis(ax: Axes | None) -> Axes:
    if ax is None:
        made: Axes = _pyplot().subplots(layout="constrained")[1]
        return made
    if not hasattr(ax, "scatter"):
        raise InvalidInput(f"ax is of type {type(ax).__name__}; give Axes of matplotlib, or none")
    return ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            needs("a plot", "matplotlib", "plot"), name="matplotlib"
        ) from error
    return pyplot

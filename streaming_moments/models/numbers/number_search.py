"""NumberSearch: the numbers of topics or states that a search tried, with their held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.halves import HeldOut, likely, noise
from streaming_moments.models.rows import Rows
from streaming_moments.plots import LOG_LIKELIHOOD, Axes, plot_numbers
from streaming_moments.progress import Report, unreported
from streaming_moments.statistics.counts.basis import Basis

# Numbers of topics to try. A single topic is tried to see whether more topics improve the score.
TRIED_TOPICS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
DOCUMENTS_EACH = 10  # with fewer documents per topic than this, topics mostly describe noise
TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
"""Numbers of states, components or communities to try."""
# One more topic gains little if its gain in held-out log-likelihood is below this share of the mean
# gain per topic so far.
_LITTLE = 0.25
# A state counts as found in both halves of the data if its error is below this share of the
# distance to the nearest other state.
_AGAIN = 0.5
# A search stops if this many numbers of topics or states in succession do not improve the score.
_WORSE = 3
_FEW = 6  # a text lists at most this many numbers of topics or states one by one


@dataclass(frozen=True)
class Trial:
    """Held-out score of one number of topics or states.

    held_out : log-likelihood of each half of the data under a model fitted to the other half
    apart : result of `furthest_apart`, if the states are fitted to each half separately
    """

    held_out: HeldOut
    apart: float | None = None


@dataclass(frozen=True)
class NumberSearch:
    """Held-out scores of several numbers of topics or states, and the number chosen by them.

    Parameters
    ----------
    curve : mapping
        Held-out score, a `HeldOut`, by number of topics or states; only numbers that could be
        fitted.
    apart : mapping
        `Trial.apart` by number, where it is known.
    of : str
        What is counted, as a plural noun such as "topics".
    more : str
        Advice on how to try larger numbers; empty if unknown.
    single : HeldOut, optional
        Score of one topic, if 1 is not among the numbers of `curve`. With it, `separable` compares
        gains with the mean gain since one topic, whichever number was the smallest that was tried.

    Examples
    --------
    >>> alike = {1: -9.0, 2: -8.6, 3: -8.2, 5: -8.15}
    >>> curve = {number: HeldOut(mean, mean) for number, mean in alike.items()}
    >>> search = NumberSearch(curve)
    >>> search.separable, search.predicting
    (3, 5)
    >>> NumberSearch({3: curve[3], 5: curve[5]}, single=curve[1]).separable
    3
    >>> NumberSearch(curve, {1: 0.0, 2: 0.1, 3: 0.8, 5: 1.2}).separable
    2
    """

    curve: Mapping[int, HeldOut]
    apart: Mapping[int, float] = field(default_factory=dict)
    of: str = "topics"
    more: str = ""
    single: HeldOut | None = None

    def __repr__(self) -> str:
        numbers = shown_numbers(self.curve, self.of)
        return f"NumberSearch({numbers}: {', '.join(self.marks)})"

    def _repr_html_(self) -> str:
        return self.columns.html(repr(self), digits=6)

    @property
    def columns(self) -> Columns:
        """Numbers of topics or states that were tried, with the held-out log-likelihood of each.

        They are in increasing order.
        """
        numbers = sorted(self.curve)
        held_out = [self.curve[number].mean for number in numbers]
        found = {self.of: Column.of_values(numbers), "held_out": Column.of_values(held_out)}
        if self.apart:
            found["apart"] = Column.of_values(self.apart.get(number) for number in numbers)
        return Columns(found)

    @property
    def marks(self) -> dict[str, int]:
        """Numbers that "auto" and "predict" choose, by the labels that they have in a plot."""
        chosen = {"separable": self.separable, "predict best": self.predicting}
        edge = max(self.curve, default=0) if len(self.curve) > 1 else 0
        return {
            f"{one} {label}{', the largest number tried' * (one == edge)}": one
            for label, one in chosen.items()
            if one is not None
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the held-out log-likelihood of each number of topics or states.

        The plot also shows the noise, and the numbers that "auto" and "predict" choose.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw in; by default those of a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.

        Raises
        ------
        InvalidInput
            No number could be fitted, or `ax` is not Axes of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        if not self.curve:
            raise InvalidInput(
                f"no number of {self.of} could be fitted, so there is no curve to plot"
            )
        curve = {number: one.mean for number, one in self.curve.items()}
        within = noise([*self.curve.values()])
        return plot_numbers({"": curve}, self.marks, self.of, LOG_LIKELIHOOD, within, ax)

    def to_table(self) -> Table:
        """Return `columns` as an Arrow table, with a row for each number that was tried."""
        return self.columns.to_table()

    def to_frame(self) -> DataFrame:
        """Return the table of `to_table` as a pandas frame."""
        return self.columns.to_frame("trial")

    @property
    def separable(self) -> int | None:
        """Number of topics or states that the data separate; None without scores.

        It is the largest number whose states are all found in both halves of the data, but at most
        the number with the best held-out score. If the trials did not compare the states of the
        halves, it is the smallest number after which one more topic gains little.
        """
        if not self.apart:
            return telling(self._from_one)
        likeliest = max(self.curve, key=lambda number: (self.curve[number].mean, -number))
        again = (number for number, apart in self.apart.items() if apart < _AGAIN)
        return max((number for number in again if number <= likeliest), default=1)

    @property
    def _from_one(self) -> Mapping[int, HeldOut]:
        """The scores of `curve`, and the score of one topic if it is known."""
        return self.curve if self.single is None else {1: self.single, **self.curve}

    @property
    def predicting(self) -> int | None:
        """Smallest number with a score within the noise of the best score; None without scores."""
        numbers = sorted(self.curve)
        places = likely([self.curve[number] for number in numbers])
        return numbers[places[0]] if places else None

    def found(self, how: str) -> int:
        """Return the number that "auto" or "predict" chooses; raise InvalidInput without scores."""
        require_search(how)
        found = self.predicting if how == "predict" else self.separable
        if found is None:
            raise InvalidInput(f"none of the numbers of {self.of} could be fitted; give a number")
        return found

    def sentence(self, how: str = "auto") -> str:
        """Return a sentence with the chosen number, the reason for it, and all gains.

        It is empty without scores.

        Examples
        --------
        >>> alike = {1: -9.0, 2: -8.6, 3: -8.2, 5: -8.15}
        >>> curve = {number: HeldOut(mean, mean) for number, mean in alike.items()}
        >>> print(NumberSearch(curve, of="states", more="try 5 to 10").sentence())
        chose 3 states: one more gains less than a quarter of the mean gain in held-out \
likelihood; 5 predict best, the largest number tried (try 5 to 10); gain of each: 2 +0.4, 3 \
+0.4, 5 +0.025
        """
        if not self.curve:
            return ""
        chosen = self.found(how)
        of = self.of if chosen != 1 else one_of(self.of)
        gains = f"; gain of each: {self.gains}" if len(self.curve) > 1 else ""
        return f"chose {chosen} {of}: {self.reasons(how)}{gains}"

    def reasons(self, how: str = "auto") -> str:
        """Return the end of a sentence that says why `found` chooses its number."""
        separable, predicting = self.separable, self.predicting
        best = "they predict best" if how == "predict" else f"{predicting} predict best"
        if how != "predict" and predicting == separable:
            best = "they also predict best"
        if predicting == max(self.curve):
            best += ", the largest number tried" + (f" ({self.more})" if self.more else "")
        if how == "predict":
            also = "they" if separable == predicting else separable
            return f"{best}; {also} are separable"
        if self.apart:
            return f"both halves find all of them, but not all of a larger number; {best}"
        few = "one more gains less than a quarter of the mean gain in held-out likelihood"
        return f"{few}; {best}"

    @property
    def gains(self) -> str:
        """Gain in nats per added topic, of each number that was tried over the one before.

        Examples
        --------
        >>> NumberSearch({1: HeldOut(-9.0, -9.0), 3: HeldOut(-8.0, -8.0)}).gains
        '3 +0.5'
        """
        curve = self._from_one
        return ", ".join(
            f"{more} {curve[more].gain(curve[fewer])[0] / (more - fewer):+.2g}"
            for fewer, more in pairwise(sorted(curve))
        )


def require_search(how: str, name: str = "how", number: bool = False) -> None:
    """Raise InvalidInput unless `how` is "auto" or "predict".

    `name` is the name of the argument in the message. If `number` is true, the message says that a
    whole number is also allowed.
    """
    if how not in ("auto", "predict"):
        known = 'a whole number, "auto" or "predict"' if number else '"auto" or "predict"'
        raise InvalidInput(f"{name} is {how!r}; give {known}")


def shown_numbers(numbers: Iterable[int], of: str) -> str:
    """Return a text about some numbers of topics: a few are listed, of many the range is given.

    Examples
    --------
    >>> shown_numbers([2, 3, 5], "topics"), shown_numbers(range(2, 30), "states")
    ('2, 3, 5 topics', '28 numbers of states from 2 to 29')
    """
    known = sorted(set(numbers))
    if len(known) > _FEW:
        return f"{len(known)} numbers of {of} from {known[0]} to {known[-1]}"
    return f"{', '.join(map(str, known)) or 'no'} {of if known != [1] else one_of(of)}"


def one_of(several: str) -> str:
    """Return the singular of a plural noun, such as topics.

    Examples
    --------
    >>> one_of("states"), one_of("communities")
    ('state', 'community')
    """
    stem = several.removesuffix("ies")
    return f"{stem}y" if stem != several else several.removesuffix("s")


def furthest_apart(bars: NDArray[np.float64], states: NDArray[np.float64], norm: int = 1) -> float:
    """Return the largest error of a state, relative to its distance to the nearest other state.

    bars : (k,) float64, half the difference of each state between the fits to two halves
    states : (k, n) float64, states fitted to all records, or means of those fitted to the halves
    norm : order of the norm by which distances are measured

    Examples
    --------
    >>> furthest_apart(np.array([0.25, 0.1]), np.eye(2))
    0.25
    """
    return float(_apart(bars, states, norm).max())


def not_found_again(
    bars: NDArray[np.float64], states: NDArray[np.float64], norm: int = 1
) -> NDArray[np.intp]:
    """Return the indices of states that do not count as found in both halves of the data.

    Parameters are as for `furthest_apart`.

    Examples
    --------
    >>> not_found_again(np.array([0.6, 0.1]), np.eye(2))
    array([0])
    """
    return np.flatnonzero(_apart(bars, states, norm) >= _AGAIN)


def _apart(
    bars: NDArray[np.float64], states: NDArray[np.float64], norm: int
) -> NDArray[np.float64]:
    """Return the (k,) errors of states, relative to their distance to the nearest other state."""
    if len(states) == 1:
        return np.zeros(1)
    distances = [np.linalg.norm(states - one, ord=norm, axis=1) for one in states]
    nearest = [np.delete(row, place).min() for place, row in enumerate(distances)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = 2 * bars / np.array(nearest)
    return np.asarray(np.nan_to_num(ratios, nan=np.inf, posinf=np.inf))


def searched(
    numbers: Iterable[int],
    trial_of: Callable[[int], Trial | None],
    how: str,
    of: str = "topics",
    more: str = "",
    worse: int = _WORSE,
) -> NumberSearch:
    """Try the increasing `numbers` of topics or states; for "auto", also some between them.

    The search stops after `worse` numbers in succession without improvement. A number is an
    improvement if its held-out score is better, or if all of its states are found in both halves of
    the data. "auto" then tries numbers midway between its choice and the numbers that were tried
    below and above it, until these are nearer to the choice than a twentieth of it.

    trial_of : returns the trial of a number, or None if it cannot be fitted
    worse : stop after this many numbers in succession without improvement; 0 tries all numbers
    """
    tried = dict[int, Trial | None]()
    best: HeldOut | None = None
    since = 0
    for number in numbers:
        one = tried[number] = trial_of(number)
        since += 1
        if one is not None:
            gain, noise = one.held_out.gain(best) if best is not None else (1.0, 0.0)
            best = one.held_out if gain > 0 else best
            if gain > noise or (one.apart is not None and one.apart < _AGAIN):
                since = 0
        if worse and since == worse:
            break
    while how == "auto" and (middle := _between(tried)) is not None:
        tried[middle] = trial_of(middle)
    return search_of(tried, of, more)


def search_of(tried: Mapping[int, Trial | None], of: str, more: str = "") -> NumberSearch:
    """Make a search result from trials; leave out the numbers that could not be fitted."""
    known = {number: one for number, one in sorted(tried.items()) if one is not None}
    curve = {number: one.held_out for number, one in known.items()}
    apart = {number: one.apart for number, one in known.items() if one.apart is not None}
    return NumberSearch(curve, apart, of, more)


def _between(tried: Mapping[int, Trial | None]) -> int | None:
    """Return the next number to try: between the best one so far and the nearest ones tried.

    Returns None if the gaps are small enough.
    """
    found = search_of(tried, "").separable
    if found is None:
        return None
    below = max((number for number, one in tried.items() if one and number < found), default=found)
    above = min((number for number, one in tried.items() if one and number > found), default=found)
    gap = max(1, found // 20)
    gaps = [ends for ends in ((below, found), (found, above)) if ends[1] - ends[0] > gap]
    middles = ((low + high) // 2 for low, high in gaps)
    return next((middle for middle in middles if middle not in tried), None)


def searched_by_fits(
    model: Any,
    rows: Rows,
    options: Any,
    how: str,
    numbers: Iterable[int] = TRIED,
    worse: int = _WORSE,
    report: Report = unreported,
) -> NumberSearch:
    """Search as `searched` does, by fits of a class of models to rows in memory.

    Calls `report` after each trial. Raises NotIdentifiable if none of the numbers can be fitted,
    and InvalidInput if the statistics have no halves, or if a half is empty.
    """
    refused: list[NotIdentifiable] = []

    def trial_of(number: int) -> Trial | None:
        tried = f"tried {number} {model.numbered if number != 1 else one_of(model.numbered)}"
        try:
            found = trial_by(model, rows, replace(options, topics=number))
        except NotIdentifiable as error:
            refused.append(error)
            report(f"{tried}: {error}")
            return None
        report(f"{tried}: held-out log-likelihood {found.held_out.mean:.4f}")
        return found

    found = searched(numbers, trial_of, how, model.numbered, worse=worse)
    if not found.curve:
        raise refused[0]
    report(found.sentence(how))
    return found


def trial_by(model: Any, rows: Rows, options: Any) -> Trial:
    """Fit the halves of the records with these options, and return the held-out score.

    Raises NotIdentifiable if the statistics identify fewer topics or states than the options ask
    for, and InvalidInput if a half is empty.
    """
    found: Trial | None = model.trial(rows, options)
    if found is None:
        raise InvalidInput(
            f"one of the two halves of the records has no {one_of(model.holds_out)} to hold out; "
            f"count more records, or give the number of {model.numbered}"
        )
    return found


def telling(curve: Mapping[int, HeldOut]) -> int | None:
    """Return the smallest number after which one more topic gains little; None for an empty curve.

    `curve` has the held-out score of each number of topics. "Little" means less than a quarter of
    the mean gain per topic since the smallest number. People would name about as many topics as
    this returns; the number that predicts best is often several times larger. Gains within the
    noise count as 0.

    Examples
    --------
    >>> alike = {1: -9.0, 2: -8.6, 3: -8.2, 4: -8.19, 5: -8.185}
    >>> telling({number: HeldOut(mean, mean) for number, mean in alike.items()})
    3
    """
    return next((number for number in sorted(curve) if _is_enough(curve, number)), None)


def _is_enough(curve: Mapping[int, HeldOut], number: int) -> bool:
    """Whether each larger number of topics gains only a little for each additional topic."""
    first = min(curve)
    so_far = curve[number].gain(curve[first])[0] / max(number - first, 1)
    return all(_gain(curve, number, more) <= _LITTLE * so_far for more in curve if more > number)


def _gain(curve: Mapping[int, HeldOut], number: int, more: int) -> float:
    """Return the gain in score per topic from `number` to `more` topics; 0 if within the noise."""
    gain, noise = curve[more].gain(curve[number])
    return gain / (more - number) if gain > noise else 0.0


def numbers_of_topics(basis: Basis, documents: int) -> tuple[int, ...]:
    """Return the numbers of topics to try, up to the largest that basis and documents support.

    Examples
    --------
    >>> import numpy as np
    >>> basis = Basis(np.eye(40, 17, dtype=np.int8), 40)
    >>> numbers_of_topics(basis, 1000), numbers_of_topics(basis, 35)
    ((1, 2, 3, 5, 7, 10), (1, 2, 3))
    """
    # `Basis.from_pilot` makes three columns for every two topics, and a few more: divide by 1.5
    most = min(basis.columns / 1.5, documents / DOCUMENTS_EACH)
    return tuple(number for number in TRIED_TOPICS if number <= most) or (1,)

"""SharesOverTime: shares of topics by day, week or month, as a table or a plot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.interface.topics_view import Topics
from streaming_moments.plots import Axes, Figure, plot_shares
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import Period
from streaming_moments.storage.merging.origin_shares import only_of
from streaming_moments.storage.operations.lineages import store_counting
from streaming_moments.storage.operations.shares_over_time import PeriodShares, shares_over_time
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True, eq=False, repr=False)
class SharesOverTime:
    """Shares of topics in periods of time; `Store.shares_over_time` makes one.

    Parameters
    ----------
    periods : tuple of PeriodShares
        Shares of each period, the earliest first.
    names : tuple of str
        The label of each of k topics, or its two top words.
    """

    periods: tuple[PeriodShares, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        store: MomentStore,
        topics: Topics,
        name: str | None,
        by: Period,
        origin: str | None = None,
    ) -> SharesOverTime:
        """Compute the shares of topics of a stored model; arguments and errors as in `Store`."""
        counted = store_counting(store, model_called(store.commit, name), topics.model)
        counted = counted if origin is None else only_of(counted, origin)
        return cls(shares_over_time(counted, topics.model, by), tuple(topics.names))

    def __repr__(self) -> str:
        number = f"{of_number(len(self.periods), 'period')}, {of_number(len(self.names), 'topic')}"
        if not self.periods:
            return f"SharesOverTime({number})"
        first, last = self.periods[0].days.first, self.periods[-1].days.last
        return f"SharesOverTime({number}, {first} to {last})"

    def _repr_html_(self) -> str:
        return self.columns.html(repr(self))

    @property
    def shares(self) -> NDArray[np.float64]:
        """(periods, k) float64 share of each topic among the tokens of each period."""
        return np.array([one.shares for one in self.periods]).reshape(-1, len(self.names))

    @property
    def bars(self) -> NDArray[np.float64]:
        """(periods, k) float64 standard errors of the shares."""
        return np.array([one.bars for one in self.periods]).reshape(-1, len(self.names))

    @property
    def columns(self) -> Columns:
        """First and last day (ISO 8601), number of tokens, and the share and bar of each topic."""
        days = [one.days for one in self.periods]
        return Columns.of(
            first=Column.of_values(one.first.isoformat() for one in days),
            last=Column.of_values(one.last.isoformat() for one in days),
            tokens=np.array([one.tokens for one in self.periods], dtype=np.int64),
            share=self.shares,
            bar=self.bars,
        )

    def to_table(self) -> Table:
        """Return an Arrow table with a row for each period; shares and bars are lists of k."""
        return self.columns.to_table()

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with a row for each period: `share_0`, `bar_0` and so on."""
        return self.columns.to_frame("period")

    def plot(self, figure: Figure | None = None) -> list[Axes]:
        """Draw a panel for each topic: its shares with their error bars.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one of pyplot.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels.

        Raises
        ------
        InvalidInput
            No period has a word of the model, or the figure is not one of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        if not self.periods:
            raise InvalidInput("no period has a word of the model, so there is nothing to draw")
        titles = [f"{topic} {name}" for topic, name in enumerate(self.names)]
        days = [one.days.first for one in self.periods]
        return plot_shares(days, self.shares, self.bars, titles, figure)

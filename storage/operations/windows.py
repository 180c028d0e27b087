"""Windows: the statistics of some days of a version, the recent ones maybe weighing more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from operator import or_
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics, WeightedStatistics
from streaming_moments.statistics.half_life import half_life_suffix, half_life_weights
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.covering import Part, covered
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.segments.blocks import read_block, sum_totals, whole_totals
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Window:
    """Which days count, and how much.

    Parameters
    ----------
    since, until : date, optional
        First and last day, both counted; by default all.
    half_life : float, optional
        Days after which a document counts half; by default all count alike.

    Raises
    ------
    InvalidInput
        `until` before `since`, or a half-life that is not above 0.
    """

    since: date | None = None
    until: date | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.until < self.since:
            raise InvalidInput(
                f"the window ends on {self.until}, before it begins on {self.since}; give the "
                "earlier day as `refit --since`"
            )
        if self.half_life is not None:
            half_life_weights([], self.half_life)

    @property
    def is_everything(self) -> bool:
        """Whether all documents count, and alike."""
        return self == Window()

    @property
    def attributes(self) -> dict[str, str | float | None]:
        """As models save it: the days in ISO 8601, and the half-life.

        Examples
        --------
        >>> Window(half_life=7).attributes
        {'since': None, 'until': None, 'half_life': 7}
        """
        since, until = (None if day is None else str(day) for day in (self.since, self.until))
        return {"since": since, "until": until, "half_life": self.half_life}

    @classmethod
    def of_model(cls, model: Model) -> Window:
        """The window that a model was fitted on."""
        since, until = (
            None if day is None else date.fromisoformat(day) for day in (model.since, model.until)
        )
        return cls(since, until, model.half_life)

    @property
    def suffix(self) -> str:
        """Suffix of model names with a window; empty for everything.

        Examples
        --------
        >>> Window(date(2026, 11, 1), half_life=7).suffix
        '-from2026-11-01-half7'
        """
        days = (("from", self.since), ("to", self.until))
        given = [f"-{name}{day}" for name, day in days if day is not None]
        return "".join([*given, half_life_suffix(self.half_life)])

    def holds(self, days: DateRange) -> bool:
        """Whether all days of a range are in it."""
        return (self.since is None or self.since <= days.first) and (
            self.until is None or days.last <= self.until
        )

    def meets(self, days: DateRange) -> bool:
        """Whether any day of a range is in it."""
        return (self.since is None or self.since <= days.last) and (
            self.until is None or days.first <= self.until
        )


@dataclass(frozen=True)
class WindowedStore:
    """Statistics of a window of a version, to be fitted as the whole is. Make one with `of`.

    Parameters
    ----------
    store : MomentStore
        The version.
    window : Window
        Which days.
    groups : tuple of (float, tuple of SegmentReference)
        Segments of each weight; 1 for all without a half-life.
    """

    store: MomentStore
    window: Window
    groups: tuple[tuple[float, tuple[SegmentReference, ...]], ...]

    @classmethod
    def of(cls, store: MomentStore, window: Window) -> WindowedStore:
        """The window of a version.

        A segment weighs `2^(-age / half life)` where its age in days is counted from the middle
        of its days to the last day of the window or, without one, of the version.

        Raises
        ------
        InvalidInput
            Segments without dates, or none in the window; a segment of days inside and outside;
            or shards taken away apart from the segment that holds them: each with the remedy.
        """
        dated = dated_segments(store)
        chosen = [(part, days) for part, days in dated if window.meets(days)]
        for _, days in chosen:
            if not window.holds(days):
                raise InvalidInput(_straddles(store, days))
        if not chosen:
            there = reduce(or_, (days for _, days in dated)) if dated else "none"
            raise InvalidInput(
                f"no document of version {store.version} is of the window; its documents are "
                f"of {there}: choose days among these"
            )
        if window.half_life is None:
            weights: tuple[float, ...] = (1.0,) * len(chosen)
        else:
            end = window.until or max(days.last for _, days in chosen)
            ages = [float((end - days.middle).days) for _, days in chosen]
            weights = half_life_weights(ages, window.half_life)
        groups: dict[float, list[SegmentReference]] = {}
        for weight, (part, _) in zip(weights, chosen, strict=True):
            groups.setdefault(weight, []).append(part)
        for parts in groups.values():
            _require_whole(store, parts)
        return cls(store, window, tuple((weight, tuple(own)) for weight, own in groups.items()))

    @property
    def basis(self) -> Basis:
        """Q."""
        return self.store.basis

    @property
    def row_blocks(self) -> int:
        """Number of row blocks B."""
        return self.store.row_blocks

    @property
    def codocuments(self) -> bool:
        """Whether co-document counts are stored."""
        return self.store.codocuments

    @property
    def halves(self) -> bool:
        """Whether sums of half of the documents are stored separately."""
        return self.store.halves

    @property
    def layout(self) -> SegmentLayout:
        """How the statistics are cut."""
        return self.store.layout

    @property
    def version(self) -> int:
        """The version."""
        return self.store.version

    @property
    def segments(self) -> tuple[SegmentReference, ...]:
        """Those of the window."""
        return tuple(part for _, own in self.groups for part in own)

    def ledger(self) -> Ledger:
        """The shards counted in the window."""
        return self.store.ledger().of_segments(self.segments)

    def length_histogram(self) -> Lengths:
        """Documents by length; weighted where there is a half-life."""
        return self.row_lengths().whole

    def totals(self) -> Any:
        """`Totals` of what is counted in the window."""
        parts = covered(self.segments, self.store.commit.sums)
        return whole_totals(self.store.folder, parts, self.store.layout)

    def row_lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row, as of `Snapshot`; weighted where there is a half-life."""
        _ = self.store.counts
        folder, layout = self.store.folder, self.store.layout
        sums = [(weight, sum_totals(folder, own, layout)) for weight, own in self._parts]
        return sums[0][1] if self.window.half_life is None else RowLengths.weighted(sums)

    def load_block(self, index: int, halves: bool = True) -> Statistics:
        """Statistics of one row block: integers, or floats where there is a half-life.

        With `halves` False those of half of the documents, where they are kept, are not read.

        Raises
        ------
        StoreError
            A file is missing, swapped, cut off or damaged: names it.
        """
        folder, layout = self.store.folder, self.store.layout
        # segments of one weight are added up as integers: what is taken away is so exactly
        kept = None if halves else replace(self.store.foundation, halves=False)
        sums = (
            (weight, read_block(folder, own, layout, index, kept)) for weight, own in self._parts
        )
        return next(sums)[1] if self.window.half_life is None else WeightedStatistics.of(sums)

    @property
    def _parts(self) -> list[tuple[float, tuple[Part, ...]]]:
        """What is read of the segments of each weight."""
        sums = self.store.commit.sums
        return [(weight, covered(own, sums)) for weight, own in self.groups]


StatisticsSource = MomentStore | WindowedStore
"""Statistics to be read by row block: a version of a store, or a window of it."""


def windowed(store: MomentStore, window: Window) -> StatisticsSource:
    """What is to be fitted: the version itself where all of it counts, else the window of it."""
    return store if window.is_everything else WindowedStore.of(store, window)


def dated_segments(store: MomentStore) -> list[tuple[SegmentReference, DateRange]]:
    """Return the segments of a version with their days; one without days raises InvalidInput."""
    parts = store.commit.segments
    dated = [(part, part.dates) for part in parts if part.dates is not None]
    if len(dated) < len(parts):
        raise InvalidInput(
            f"{len(parts) - len(dated)} of {len(parts)} segments of version {store.version} have "
            "no dates, as no date was found in the URLs of their shards; create the store with "
            "--date-column or --date-pattern, or `refit` all of it without --since, --until and "
            "--half-life"
        )
    return dated


def _straddles(store: MomentStore, days: DateRange) -> str:
    return (
        f"a segment of version {store.version} holds the documents of {days}, of which the window "
        "has some days only; let it begin and end where segments do, or `refit --version` an "
        "earlier one, from before its segments were compacted"
    )


def _require_whole(store: MomentStore, parts: list[SegmentReference]) -> None:
    overdrawn = store.ledger().of_segments(parts).overdrawn()
    if overdrawn:
        raise InvalidInput(
            f"{overdrawn[0]} was forgotten but is still counted in a segment of other days; "
            "run `streaming-moments compact`, then fit again"
        )

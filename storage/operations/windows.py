"""Windows: statistics of the documents of some days, with optional weights by their age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from operator import or_
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
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
from streaming_moments.storage.segments.blocks import read_blocks, sum_totals, whole_totals
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Window:
    """Days whose documents count, and their weights by age.

    Parameters
    ----------
    since, until : optional
        First and last day, both included; by default all days.
    half_life : float, optional
        Number of days after which the weight of a document is half as large. By default all weights
        are equal.

    Raises
    ------
    InvalidInput
        `until` is before `since`, or the half-life is not above 0.
    """

    __repr__ = short_repr

    since: date | None = None
    until: date | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.until < self.since:
            raise InvalidInput(
                f"the window ends on {self.until}, before it begins on {self.since}",
                "give the earlier day as {refit.since}",
            )
        if self.half_life is not None:
            half_life_weights([], self.half_life)

    @property
    def is_everything(self) -> bool:
        """Whether the window includes all documents, with equal weights."""
        return self == Window()

    @property
    def attributes(self) -> dict[str, str | float | None]:
        """Attributes stored with a model of this window: its days in ISO 8601, and the half-life.

        Examples
        --------
        >>> Window(half_life=7).attributes
        {'since': None, 'until': None, 'half_life': 7}
        """
        since, until = (None if day is None else str(day) for day in (self.since, self.until))
        return {"since": since, "until": until, "half_life": self.half_life}

    @classmethod
    def of_model(cls, model: Model) -> Window:
        """Return the window that a model was fitted to."""
        since, until = (
            None if day is None else date.fromisoformat(day) for day in (model.since, model.until)
        )
        return cls(since, until, model.half_life)

    @property
    def suffix(self) -> str:
        """Suffix for the names of models that are fitted to this window; empty for all documents.

        Examples
        --------
        >>> Window(date(2026, 11, 1), half_life=7).suffix
        '-from2026-11-01-half7'
        """
        days = (("from", self.since), ("to", self.until))
        given = [f"-{name}{day}" for name, day in days if day is not None]
        return "".join([*given, half_life_suffix(self.half_life)])

    def holds(self, days: DateRange) -> bool:
        """Whether the window contains all days of a range."""
        return (self.since is None or self.since <= days.first) and (
            self.until is None or days.last <= self.until
        )

    def meets(self, days: DateRange) -> bool:
        """Whether the window contains any day of a range."""
        return (self.since is None or self.since <= days.last) and (
            self.until is None or days.first <= self.until
        )


@dataclass(frozen=True)
class WindowedStore:
    """Statistics of the documents of some days; models can be fitted to it as to a whole version.

    Create one with `of`.

    window : the days
    groups : for each weight, the segments that have this weight; without a half-life, all have
        weight 1
    """

    store: MomentStore
    window: Window
    groups: tuple[tuple[float, tuple[SegmentReference, ...]], ...]

    @classmethod
    def of(cls, store: MomentStore, window: Window) -> WindowedStore:
        """Select the segments of a version whose documents are of the days of a window.

        A segment has weight `2^(-age / half_life)`. The age of a segment is the number of days from
        the middle of its own days to the last day of the window. If the window has no last day, the
        last day of the version is used.

        Raises InvalidInput if a segment has no dates, or has days inside and outside of the window.
        Also raises InvalidInput if no segment is in the window, or if a segment of the window
        subtracts a shard that a segment of other days counts. The error has a remedy.
        """
        dated = dated_segments(store)
        chosen = [(part, days) for part, days in dated if window.meets(days)]
        for _, days in chosen:
            if not window.holds(days):
                raise InvalidInput(_straddles(store, days))
        if not chosen:
            there = reduce(or_, (days for _, days in dated)) if dated else "none"
            raise InvalidInput(
                f"version {store.version} has no documents in the window; days with documents: "
                f"{there}; choose among these days"
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
        """The basis Q of the store: the matrix that projects words to a few columns."""
        return self.store.basis

    @property
    def row_blocks(self) -> int:
        """Number B of row blocks: parts of the rows that are stored in files of their own."""
        return self.store.row_blocks

    @property
    def codocuments(self) -> bool:
        """Whether the statistics include in how many documents two words occur together."""
        return self.store.codocuments

    @property
    def halves(self) -> bool:
        """Whether sums of one half of the documents are stored separately."""
        return self.store.halves

    @property
    def layout(self) -> SegmentLayout:
        """Layout of the statistics."""
        return self.store.layout

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.store.version

    @property
    def segments(self) -> tuple[SegmentReference, ...]:
        """Segments of the window."""
        return tuple(part for _, own in self.groups for part in own)

    def ledger(self) -> Ledger:
        """Return the ledger of the shards counted in the window."""
        return self.store.ledger().of_segments(self.segments)

    def length_histogram(self) -> Lengths:
        """Return the number of documents of each length, weighted if there is a half-life."""
        return self.row_lengths().whole

    def totals(self) -> Any:
        """Return the `Totals` of the window: sums over records, such as numbers of documents."""
        parts = covered(self.segments, self.store.commit.sums)
        return whole_totals(self.store.folder, parts, self.store.layout)

    def row_lengths(self) -> RowLengths[Lengths]:
        """Return for each row (word) the lengths of the documents that were counted with this word.

        If the window has a half-life, documents are weighted by age.
        """
        _ = self.store.counts
        folder, layout = self.store.folder, self.store.layout
        sums = [(weight, sum_totals(folder, own, layout)) for weight, own in self._parts]
        return sums[0][1] if self.window.half_life is None else RowLengths.weighted(sums)

    def load_block(self, index: int, halves: bool = True) -> Statistics:
        """Return the statistics of one row block, as `load_blocks` does."""
        [block] = self.load_blocks([index], halves)
        return block

    def load_blocks(self, indices: Sequence[int], halves: bool = True) -> list[Statistics]:
        """Return the statistics of row blocks: integers, or floats with a half-life.

        `halves=False` does not read the separate sums of one half of the documents. Raises
        StoreError if a file is missing, swapped, truncated or damaged. The error names it.
        """
        folder, layout = self.store.folder, self.store.layout
        # add up segments of the same weight as integers, so that subtracted segments cancel exactly
        kept = None if halves else replace(self.store.foundation, halves=False)
        if self.window.half_life is None:
            [(_, own)] = self._parts
            return read_blocks(folder, own, layout, indices, kept)
        # read one block at a time, because each block needs memory for one sum per weight
        return [
            WeightedStatistics.of(
                (weight, read_blocks(folder, own, layout, [index], kept)[0])
                for weight, own in self._parts
            )
            for index in indices
        ]

    @property
    def _parts(self) -> list[tuple[float, tuple[Part, ...]]]:
        """For each weight, the segments to read, with stored sums in the place of some of them."""
        sums = self.store.commit.sums
        return [(weight, covered(own, sums)) for weight, own in self.groups]


StatisticsSource = MomentStore | WindowedStore
"""Statistics that are read by row block: a version of a store, or a window of it."""


def windowed(store: MomentStore, window: Window) -> StatisticsSource:
    """Return the version itself if the window includes all documents equally, else its window."""
    return store if window.is_everything else WindowedStore.of(store, window)


def dated_segments(store: MomentStore) -> list[tuple[SegmentReference, DateRange]]:
    """Return the segments of a version with their days; raise InvalidInput if one has no dates."""
    parts = store.commit.segments
    dated = [(part, part.dates) for part in parts if part.dates is not None]
    if len(dated) < len(parts):
        raise InvalidInput(
            f"documents of version {store.version} have no dates, in {len(parts) - len(dated):,} "
            f"of {of_number(len(parts), 'segment')}, because the URLs of their shards lack dates",
            "create the store with {create.date_column} or {create.date_pattern}, or use all "
            "documents without a window of days",
        )
    return dated


def _straddles(store: MomentStore, days: DateRange) -> str:
    return (
        f"a segment of version {store.version} holds the documents of {days}, and the window has "
        "only some of these days; choose days at the ends of segments, or fit an earlier version, "
        "from before its segments were compacted"
    )


def _require_whole(store: MomentStore, parts: list[SegmentReference]) -> None:
    overdrawn = store.ledger().of_segments(parts).overdrawn()
    if overdrawn:
        raise InvalidInput(
            f"{overdrawn[0]} was forgotten but is still counted in a segment of other days",
            "run {compact}, then fit again",
        )

"""Shares of topics over time, from the counts of each day in a store. Reads no documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import mixture_shares
from streaming_moments.statistics.counts.lengths.concentration import token_concentration
from streaming_moments.storage.dates import PERIODS, DateRange, Period
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.operations.windows import dated_segments
from streaming_moments.storage.segments.blocks import read_rows, sum_totals
from streaming_moments.storage.store.store import MomentStore

_MOST_PERIODS = 60  # a chart of shares over time has at most this many days, weeks or months


@dataclass(frozen=True)
class PeriodShares:
    """Shares of topics in the documents of some days.

    days : first and last day with documents
    tokens : number of tokens of the model's words
    shares, bars : (k,) shares of the tokens in each topic, and their standard errors. They are
        computed by `mixture_shares` with the `token_concentration` of the documents.

    The standard error of the difference between the shares of two periods is the square root of the
    sum of the squared standard errors of both periods.
    """

    days: DateRange
    tokens: int
    shares: tuple[float, ...]
    bars: tuple[float, ...]


def finest_period(store: MomentStore) -> Period | None:
    """Return the shortest period (day, week or month) for which shares over time can be drawn.

    Each segment of the store must lie within one such period, and at most 60 periods may have
    segments. Returns None if this holds for none of the three, or if a segment has no dates.
    """
    dates = [part.dates for part in store.commit.segments]
    days = [one for one in dates if one is not None]
    if not days or len(days) < len(dates):
        return None
    for by in PERIODS:
        within = all(one.period(by) == DateRange(one.first, one.first).period(by) for one in days)
        if within and len({one.period(by) for one in days}) <= _MOST_PERIODS:
            return by
    return None


def shares_over_time(
    store: MomentStore, model: TopicModel, by: Period = "month"
) -> tuple[PeriodShares, ...]:
    """Return the shares of a model's topics in each day, week or month, the earliest first.

    Parameters
    ----------
    store : MomentStore
        A store whose vocabulary begins with the words of the model: see
        `storage.operations.lineages.store_counting`.
    model : TopicModel
        A model fitted to any version of the store.
    by : {"day", "week", "month"}
        Weeks begin on Monday. Periods without a token are omitted. If a word was added after some
        documents were counted, it is ignored in these documents. If the store cuts documents into
        passages, it does not store the lengths of whole documents. The standard errors are then
        estimates, and tend to be too large.

    Raises
    ------
    InvalidInput
        A segment has no dates, or spans several periods. The error has a remedy.
    StoreError
        A file is missing or damaged.
    """
    held: dict[DateRange, DateRange] = {}
    parts: dict[DateRange, list[SegmentReference]] = {}
    for part, days in dated_segments(store):
        period = days.period(by)
        if DateRange(days.first, days.first).period(by) != period:
            longer = "" if by == "month" else "choose longer periods, or "
            raise InvalidInput(
                f"a segment of version {store.version} holds the documents of {days}, which are in "
                f"more than one {by}; {longer}create a new store, and count shards of one {by} "
                f'each, or collections by `update(by="{by}")`. If segments were compacted, open an '
                "earlier version instead"
            )
        held[period] = held[period] | days if period in held else days
        parts.setdefault(period, []).append(part)
    shares = ((held[period], shares_in(store, model, own)) for period, own in sorted(parts.items()))
    return tuple(PeriodShares(days, *found) for days, found in shares if found is not None)


def shares_in(
    store: MomentStore, model: TopicModel, parts: Sequence[SegmentReference]
) -> tuple[int, tuple[float, ...], tuple[float, ...]] | None:
    """Return tokens, shares and bars, as in `PeriodShares`, of the documents of some segments.

    Returns None if the documents have no token of the model's words.
    """
    by_words: dict[int, NDArray[np.int64]] = {}
    for part in parts:
        counts = read_rows(store.folder, part, store.layout, "word_counts")[: model.n_words]
        by_words[counts.size] = by_words.get(counts.size, 0) + part.sign * counts
    counts, counted = _added_up(by_words, model.n_words)
    if not counts.any():
        return None
    cut = store.policy is not None and store.policy.passage_words is not None
    lengths = sum_totals(store.folder, parts, store.layout).whole
    concentration = token_concentration(lengths, passages=cut)
    shares, bars = mixture_shares(model, counts, counted, concentration)
    return int(counts.sum()), tuple(shares.tolist()), tuple(bars.tolist())


def _added_up(
    parts: Mapping[int, NDArray[np.int64]], n_words: int
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Add up counts of words; also return for each word in what share of documents it was counted.

    A word that was added to the vocabulary is not counted in earlier documents. `parts` maps each
    size of the vocabulary to the word counts of the documents that were counted with a vocabulary
    of this size. A share of documents is measured in tokens of the words of the first vocabulary,
    which were counted in all documents. If all words were counted in all documents, the result has
    None instead of shares.
    """
    fewest = min(parts)
    counts, tokens = np.zeros(n_words, dtype=np.int64), np.zeros(n_words)
    for words, part in parts.items():
        counts[:words] += part
        tokens[:words] += part[:fewest].sum()
    return counts, tokens / tokens.max() if fewest < n_words and tokens.any() else None

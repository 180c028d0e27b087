"""Shares over time: periods of segments by their days, with the counts of their words."""

import uuid
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import mixture_shares
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.concentration import token_concentration
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.shares_over_time import finest_period, shares_over_time
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import BASIS, VOCABULARY, create, model_of, segment

MONDAY = date(2026, 11, 2)


def day(number):
    one = MONDAY + timedelta(number)
    return DateRange(one, one)


def counted(store, number, rows, url=None):
    """A segment of documents of one day, with counts of each word."""
    batch = CountBatch.from_csr(rows, store.basis.vocabulary)
    statistics = MomentStatistics.of(batch, store.basis)
    lengths = statistics.length_histogram
    record = ShardRecord(url or uuid.uuid4().hex, 10, "sha256:1", len(rows), lengths.n_tokens)
    return store.write_segment(statistics, [record], day(number))


def expected(model, rows, share=None, passages=False):
    lengths = LengthHistogram.of(np.sum(rows, axis=1))
    concentration = token_concentration(lengths, passages)
    counts = np.sum(rows, axis=0)
    shares, bars = mixture_shares(model, counts, share, concentration)
    return int(counts.sum()), tuple(shares.tolist()), tuple(bars.tolist())


def told(found):
    return [(one.tokens, one.shares, one.bars) for one in found]


ROWS = [[3, 1, 0, 2], [0, 4, 1, 0], [1, 0, 0, 1]]
MORE = [[0, 0, 5, 1], [2, 0, 2, 0]]


def test_each_period_has_the_shares_of_its_documents_less_those_taken_away():
    store, model = create(), model_of(1)
    store = store.append(counted(store, 1, MORE))
    store = store.append(counted(store, 0, ROWS, "a"))
    store = store.append(counted(store, 0, MORE))
    store = store.append(counted(store, 8, [[0, 0, 0, 0]]))
    by_day = shares_over_time(store, model, "day")
    assert told(by_day) == [expected(model, [*ROWS, *MORE]), expected(model, MORE)]
    [week] = shares_over_time(store, model, "week")
    assert week.days == DateRange(day(0).first, day(1).last)
    assert told([week]) == [expected(model, [*ROWS, *MORE, *MORE])]
    removed = (counted(store, 0, ROWS, "a"),)
    store = commit_recount(store, Recount("forget", "", removed=removed))
    assert told(shares_over_time(store, model, "day")) == [expected(model, MORE)] * 2


def test_a_period_whose_tokens_are_all_of_later_words_has_no_shares():
    store, model = create(), model_of(1)
    store = grow(store, ["steam"])
    store = store.append(counted(store, 0, [[0, 0, 0, 0, 3]]))
    assert shares_over_time(store, model, "day") == ()


def wider(model):
    """A model with one more word."""
    topics = np.vstack([0.8 * model.topics, np.full((1, 2), 0.2)])
    return TopicModel.from_topics(topics, model.weights, alpha0=0.1)


def test_where_no_document_has_a_word_that_all_of_them_count_all_words_count_alike():
    store, wide = create(), wider(model_of(1))
    store = grow(store.append(counted(store, 0, [[0, 0, 0, 0]])), ["steam"])
    late = [[0, 0, 0, 0, 3]]
    store = store.append(counted(store, 0, late))
    assert told(shares_over_time(store, wide, "day")) == [expected(wide, [[0] * 5, *late])]


def test_words_that_came_later_are_uncounted_in_documents_from_before():
    store, model = create(), model_of(1)
    wide = wider(model)
    store = store.append(counted(store, 0, ROWS))
    store = grow(store, ["steam"])
    late = [[*row, 2] for row in MORE]
    store = store.append(counted(store, 0, late))
    before, after = np.sum(ROWS), np.sum(MORE)
    share = np.array([1, 1, 1, 1, after / (before + after)])
    [found] = shares_over_time(store, wide, "month")
    own = expected(wide, [*([*row, 0] for row in ROWS), *late], share)
    assert told([found]) == [own]
    # all documents count all words of the earlier model
    [found] = shares_over_time(store, model, "month")
    assert (found.tokens, found.shares) == expected(model, ROWS + MORE)[:2]


def test_documents_that_were_cut_are_counted_as_passages():
    policy = TokenPolicy(passage_words=4)
    vocabulary = replace(VOCABULARY, policy=policy.fingerprint)
    basis = replace(BASIS, vocabulary=vocabulary.fingerprint)
    url = f"memory://{uuid.uuid4().hex}"
    store = MomentStore.create(url, vocabulary, policy, basis, ShardFormat())
    store = store.append(counted(store, 0, ROWS))
    model = model_of(1)
    assert told(shares_over_time(store, model, "day")) == [expected(model, ROWS, None, True)]
    assert expected(model, ROWS, None, True) != expected(model, ROWS)


def of_days(ranges):
    """A version with segments of some days, of which only the days matter."""
    store = create()
    part = segment(store, {"a": 1}).reference
    segments = tuple(replace(part, dates=days) for days in ranges)
    return replace(store, commit=replace(store.commit, segments=segments))


def test_the_finest_period_holds_each_segment_and_is_not_one_of_too_many():
    assert finest_period(of_days([])) is None
    assert finest_period(of_days([None])) is None
    assert finest_period(of_days([day(0), None])) is None
    assert finest_period(of_days([day(0), day(1)])) == "day"
    assert finest_period(of_days([day(number) for number in range(60)] * 2)) == "day"
    assert finest_period(of_days([day(number) for number in range(61)])) == "week"
    assert finest_period(of_days([day(0), DateRange(day(0).first, day(6).last)])) == "week"
    assert finest_period(of_days([DateRange(day(0).first, day(7).last)])) == "month"
    months = DateRange(day(0).first, day(30).last)
    assert finest_period(of_days([months])) is None


def test_a_segment_of_several_periods_is_refused_with_its_days():
    store = create()
    weeks = DateRange(day(0).first, day(7).last)
    store = store.append(store.write_segment(*content_of(store), weeks))
    with pytest.raises(InvalidInput, match="of 2026-11-02 to 2026-11-09, which are in more than"):
        shares_over_time(store, model_of(1), "week")
    assert len(shares_over_time(store, model_of(1))) == 1


def content_of(store):
    batch = CountBatch.from_csr(ROWS, store.basis.vocabulary)
    statistics = MomentStatistics.of(batch, store.basis)
    record = ShardRecord("w", 10, "sha256:1", 3, statistics.length_histogram.n_tokens)
    return statistics, [record]

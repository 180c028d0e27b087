"""Matching: brute force over permutations and mixes, and numbers that stay."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.matching import (
    KeptTopic,
    MatchingRule,
    TopicMatching,
    best_mix,
    compare_topics,
    match_topics,
    numbered_like,
    on_all_words,
)
from streaming_moments.quality.moves import with_moves
from streaming_moments.statistics.counts.vocabulary import Vocabulary

RULE = MatchingRule()
seeds = st.integers(0, 2**32 - 1)


def drawn(rng, words, topics, sharpness=0.2):
    return rng.dirichlet(np.full(words, sharpness), topics).T


def variation(one, other):
    return np.abs(one - other).sum() / 2


@given(seeds, st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=60)
def test_no_pairing_has_a_smaller_sum_of_distances(seed, k, m):
    rng = np.random.default_rng(seed)
    before, after = drawn(rng, 6, k), drawn(rng, 6, m)
    rows, columns, distances = match_topics(before, after)
    few, many = (before, after) if k <= m else (after, before)
    least = min(
        sum(variation(few[:, i], many[:, j]) for i, j in enumerate(chosen))
        for chosen in permutations(range(max(k, m)), min(k, m))
    )
    assert distances.sum() == pytest.approx(least)
    for row, column, distance in zip(rows, columns, distances, strict=True):
        assert distance == pytest.approx(variation(before[:, row], after[:, column]))


@given(seeds)
@settings(max_examples=60)
def test_no_share_on_a_grid_is_nearer_than_the_best_mix(seed):
    rng = np.random.default_rng(seed)
    topic, one, other = drawn(rng, 8, 3).T
    share, distance = best_mix(topic, one, other)
    grid = [variation(topic, w * one + (1 - w) * other) for w in np.linspace(0, 1, 401)]
    assert 0 <= share <= 1
    assert distance <= min(grid) + 1e-12
    assert distance == pytest.approx(variation(topic, share * one + (1 - share) * other))


@given(seeds, st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=60)
def test_every_topic_is_told_of_once_by_the_stated_rule(seed, k, m):
    rng = np.random.default_rng(seed)
    before, after = drawn(rng, 7, k, 0.5), drawn(rng, 7, m, 0.5)
    found = compare_topics(before, after)
    old = [pair.before for pair in found.kept] + [lone.topic for lone in found.gone]
    new = [pair.after for pair in found.kept] + [lone.topic for lone in found.born]
    assert sorted(old) == list(range(k))
    assert sorted(new) == list(range(m))
    assert all(pair.distance <= RULE.furthest for pair in found.kept)
    for lone, mine, theirs in ((found.gone, before, after), (found.born, after, before)):
        for topic in lone:
            distances = [variation(mine[:, topic.topic], other) for other in theirs.T]
            assert topic.distance == pytest.approx(min(distances))
            assert topic.nearest == int(np.argmin(distances))
    born, gone = {x.topic for x in found.born}, {x.topic for x in found.gone}
    for mixes, lone in ((found.split, born), (found.merged, gone)):
        for mix in mixes:
            assert lone & set(mix.parts)
            assert mix.distance <= RULE.furthest
            assert mix.alone - mix.distance >= RULE.nearer
            assert RULE.least_share <= mix.share <= 1 - RULE.least_share


def test_a_topic_cut_in_two_is_split_and_the_way_back_merged():
    rng = np.random.default_rng(4)
    halves, others = drawn(rng, 40, 2, 0.05), drawn(rng, 40, 3, 0.05)
    whole = 0.6 * halves[:, 0] + 0.4 * halves[:, 1]
    before = np.column_stack([others[:, 0], whole, others[:, 1:]])
    after = np.column_stack([halves[:, 1], others, halves[:, 0]])
    there = compare_topics(before, after)
    [split] = there.split
    assert (split.whole, {*split.parts}) == (1, {0, 4})
    assert split.distance == pytest.approx(0, abs=1e-9)
    assert split.share == pytest.approx(0.6 if split.parts[0] == 4 else 0.4)
    # the larger half keeps the number
    assert [(pair.before, pair.after) for pair in there.kept] == [(0, 1), (1, 4), (2, 2), (3, 3)]
    assert [lone.topic for lone in there.born] == [0]
    assert not there.merged
    assert not there.gone
    back = compare_topics(after, before)
    [merged] = back.merged
    assert (merged.whole, {*merged.parts}) == (1, {0, 4})
    assert [lone.topic for lone in back.gone] == [0]
    assert not back.split


def test_a_new_topic_is_born_and_no_split():
    rng = np.random.default_rng(5)
    topics = drawn(rng, 60, 5, 0.05)
    found = compare_topics(topics[:, :4], topics)
    assert [lone.topic for lone in found.born] == [4]
    assert found.born[0].distance > RULE.furthest
    assert (found.split, found.merged, found.gone) == ((), (), ())


@given(seeds, st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=60)
def test_kept_topics_keep_their_numbers(seed, k, m):
    rng = np.random.default_rng(seed)
    before = drawn(rng, 30, k, 0.1)
    common = min(k, m)
    after = np.column_stack([before[:, :common], drawn(rng, 30, m - common, 0.1)])
    order = rng.permutation(m)
    model = TopicModel.from_topics(after[:, order], rng.dirichlet(np.ones(m)))
    renumbered, matching = numbered_like(model, compare_topics(before, model.topics))
    assert sorted(renumbered.weights) == sorted(model.weights)
    for pair in matching.kept:
        assert pair.distance == pytest.approx(
            variation(before[:, pair.before], renumbered.topics[:, pair.after])
        )
        assert pair.after == pair.before or pair.before >= m
    # the matching under the new numbers is that of the renumbered model
    again = compare_topics(before, renumbered.topics)
    assert matching.kept == again.kept
    assert matching.gone == again.gone
    assert matching.born == again.born


def test_topics_without_a_number_before_take_the_free_ones():
    before = np.eye(5)[:, :4]
    after = np.eye(5)[:, [4, 3, 0]]
    model, matching = numbered_like(
        TopicModel.from_topics(after, np.array([0.5, 0.3, 0.2])), compare_topics(before, after)
    )
    # 0 stays 0; 3 has no place among three topics, so it takes a free number, and that is said
    assert model.topics.argmax(axis=0).tolist() == [0, 4, 3]
    assert [(pair.before, pair.after) for pair in matching.kept] == [(0, 0), (3, 2)]
    assert [lone.topic for lone in matching.gone] == [1, 2]
    assert [lone.topic for lone in matching.born] == [1]


@given(seeds)
@settings(max_examples=30)
def test_topics_of_two_vocabularies_have_the_distances_of_their_union(seed):
    rng = np.random.default_rng(seed)
    union = [f"w{number}" for number in range(9)]
    words = [rng.permutation(union)[: rng.integers(1, 9)].tolist() for _ in range(2)]
    topics = [drawn(rng, len(own), 2) for own in words]
    one, two = on_all_words(
        topics[0], Vocabulary(tuple(words[0]), 1), topics[1], Vocabulary(tuple(words[1]), 1)
    )
    full = [np.zeros((9, 2)), np.zeros((9, 2))]
    for place, own, given_topics in zip(full, words, topics, strict=True):
        place[[union.index(word) for word in own]] = given_topics
    for i in range(2):
        for j in range(2):
            assert variation(one[:, i], two[:, j]) == pytest.approx(
                variation(full[0][:, i], full[1][:, j])
            )


def test_bounds_out_of_range_are_refused():
    with pytest.raises(InvalidInput, match=r"least_share is 0.7; it must be 0 to 0.5"):
        MatchingRule(least_share=0.7)
    with pytest.raises(InvalidInput, match="permutation"):
        TopicModel.from_topics(np.eye(2), np.ones(2) / 2).reordered(np.array([0, 0]))


def test_topics_moved_when_they_did_by_more_than_the_larger_bar():
    plain = TopicModel.from_topics(np.array([[0.5, 0.25], [0.5, 0.75]]), np.array([0.5, 0.5]))
    later = TopicModel.from_topics(np.array([[0.5625, 0.5], [0.4375, 0.5]]), np.array([0.5, 0.5]))
    kept = KeptTopic(0, 0, 0.0625), KeptTopic(1, 1, 0.25)
    matching = TopicMatching(kept, (), (), (), ())
    assert with_moves(matching, plain, later) is matching
    small = replace(plain, topic_bars=np.array([0.0625, 0.375]))
    large = replace(later, topic_bars=np.array([0.125, 0.0]))
    for before, after, expected in (
        (small, later, [True, True]),
        (plain, large, [False, True]),
        (small, large, [False, True]),
    ):
        assert [pair.moved for pair in with_moves(matching, before, after).kept] == expected

"""Matching: pair topics of a new model with those of an earlier one, and number them alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.vocabulary import Vocabulary


class Numbered(Protocol):
    """Model whose topics or states can be put in another order."""

    @property
    def n_topics(self) -> int:
        """Number of topics."""

    def reordered(self, order: NDArray[np.int64], /) -> Self:
        """Return the model with its topics in another order: topic j is the old `order[j]`."""


M = TypeVar("M", bound=Numbered)


@dataclass(frozen=True)
class MatchingRule:
    """Rule for when topics of two models are the same, and when a topic is a mix of two others.

    Parameters
    ----------
    furthest : float
        Largest total variation between two topics that count as the same, 0 to 1.
    nearer : float
        Amount by which a mix has to be nearer to a topic than the topic that matches it, 0 to 1.
    least_share : float
        Smallest share of each part of a mix, 0 to 0.5.

    Raises
    ------
    InvalidInput
        A bound is out of its range.
    """

    furthest: float = 0.5
    nearer: float = 0.1
    least_share: float = 0.2

    def __post_init__(self) -> None:
        for name, most in (("furthest", 1.0), ("nearer", 1.0), ("least_share", 0.5)):
            if not 0 <= getattr(self, name) <= most:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be 0 to {most:g}")


@dataclass(frozen=True)
class KeptTopic:
    """Topic that both models have: its number in each, and the total variation between both.

    `moved` says whether this distance exceeds the error bar of the topic (see `with_moves`); None
    if no error bar is known.
    """

    before: int
    after: int
    distance: float
    moved: bool | None = None


@dataclass(frozen=True)
class LoneTopic:
    """Topic of only one model, with the nearest topic of the other model, and their distance.

    The distance is the total variation between the two.
    """

    topic: int
    nearest: int
    distance: float


@dataclass(frozen=True)
class MixedTopic:
    """Topic of one model that is a mix of two topics of the other.

    whole, parts : number of the topic, and numbers of the two topics of the other model
    share : share of the first part in the mix; the second part has the rest
    distance : total variation between the topic and the mix
    alone : total variation between the topic and the topic that matches it or, if none does, the
        nearer part
    """

    whole: int
    parts: tuple[int, int]
    share: float
    distance: float
    alone: float


@dataclass(frozen=True)
class TopicMatching:
    """Matching of the topics of a new model with those of an earlier one.

    Topics are first matched in pairs, by which the new ones get the numbers of the earlier ones.
    Splits and merges then explain topics without a pair. So a topic that was split or merged can
    also be in `kept`, in a pair with one of its two parts.

    Parameters
    ----------
    kept : tuple of KeptTopic
        Pairs of an earlier and a later topic. They are matched so that the sum of distances is
        least; pairs that are too far apart are left out. Ordered by the number of the earlier
        topic.
    gone, born : tuple of LoneTopic
        Earlier topics that match no later topic, and later topics that match no earlier one.
    split : tuple of MixedTopic
        Earlier topics that are a mix of two later topics; one of these, or both, have no match.
    merged : tuple of MixedTopic
        Later topics that are a mix of two earlier topics; one of these, or both, have no match.
    """

    kept: tuple[KeptTopic, ...]
    gone: tuple[LoneTopic, ...]
    born: tuple[LoneTopic, ...]
    split: tuple[MixedTopic, ...]
    merged: tuple[MixedTopic, ...]


def match_topics(
    before: NDArray[np.float64], after: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pair the topics of two models of one vocabulary so that the sum of distances is least.

    Parameters
    ----------
    before, after : (n, k) and (n, m) float64
        Probability of each word in each topic.

    Returns
    -------
    (min(k, m),) int64, int64, float64
        For each pair, the number of the topic in `before` (increasing), its number in `after`, and
        the total variation between the two topics: half the L1 distance, 0 to 1.

    Raises
    ------
    InvalidInput
        The topics have different numbers of words.

    Examples
    --------
    >>> match_topics(np.eye(3)[:, [2, 0]], np.eye(3))
    (array([0, 1]), array([2, 0]), array([0., 0.]))
    """
    distances = _distances(before, after)
    rows, columns = _assigned(distances)
    return rows, columns, distances[rows, columns]


def compare_topics(
    before: NDArray[np.float64], after: NDArray[np.float64], rule: MatchingRule = MatchingRule()
) -> TopicMatching:
    """Match each topic of a model with those of a later one.

    Parameters
    ----------
    before, after : (n, k) and (n, m) float64
        Probability of each word in each topic, for the same words (see `on_all_words`).
    rule : MatchingRule
        Rule for when two topics are the same.

    Raises
    ------
    InvalidInput
        The topics have different numbers of words.

    Examples
    --------
    >>> before = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    >>> matching = compare_topics(before, np.eye(3))
    >>> matching.kept[-1], matching.split[0].parts
    (KeptTopic(before=1, after=2, distance=0.0, moved=None), (0, 1))
    """
    distances = _distances(before, after)
    found = paired(distances, distances <= rule.furthest)
    partners = {pair.before: pair.after for pair in found.kept}
    origins = {pair.after: pair.before for pair in found.kept}
    gone, born = ([lone.topic for lone in lones] for lones in (found.gone, found.born))
    return replace(
        found,
        split=_mixed(before, after, partners, born, distances, rule),
        merged=_mixed(after, before, origins, gone, distances.T, rule),
    )


def paired(distances: NDArray[np.float64], one: NDArray[np.bool_]) -> TopicMatching:
    """Match topics of two models by the (k, m) distances between them, without splits and merges.

    The sum of the distances of all pairs is least. `one` says which pairs can be the same topic;
    other pairs are left out.
    """
    rows, columns = _assigned(distances)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    kept = tuple(
        KeptTopic(row, column, float(distances[row, column]))
        for row, column in pairs
        if one[row, column]
    )
    partners, origins = {pair.before for pair in kept}, {pair.after for pair in kept}
    gone = [topic for topic in range(distances.shape[0]) if topic not in partners]
    born = [topic for topic in range(distances.shape[1]) if topic not in origins]
    return TopicMatching(kept, _lone(gone, distances), _lone(born, distances.T), (), ())


def numbered_like(model: M, matching: TopicMatching) -> tuple[M, TopicMatching]:
    """Give matched topics the numbers that they have in the earlier model.

    Returns the later model with these numbers, and the matching with the new numbers. Topics
    without a match get the remaining numbers, in the order of the later model. If the later model
    has fewer topics than the earlier one, a matched topic can have an earlier number that no longer
    exists. It also gets one of the remaining numbers.

    Examples
    --------
    >>> from streaming_moments.models.topics import TopicModel
    >>> after = TopicModel.from_topics(np.eye(2)[:, ::-1], np.array([0.6, 0.4]))
    >>> model, matching = numbered_like(after, compare_topics(np.eye(2), after.topics))
    >>> model.weights, [pair.after for pair in matching.kept]
    (array([0.4, 0.6]), [0, 1])
    """
    order = np.full(model.n_topics, -1, dtype=np.int64)
    for pair in matching.kept:
        if pair.before < model.n_topics:
            order[pair.before] = pair.after
    placed = set(order.tolist())
    others = [topic for topic in range(model.n_topics) if topic not in placed]
    order[order < 0] = others
    number = {int(topic): place for place, topic in enumerate(order)}
    return model.reordered(order), TopicMatching(
        tuple(replace(pair, after=number[pair.after]) for pair in matching.kept),
        tuple(replace(lone, nearest=number[lone.nearest]) for lone in matching.gone),
        tuple(
            sorted(
                (replace(lone, topic=number[lone.topic]) for lone in matching.born),
                key=lambda lone: lone.topic,
            )
        ),
        tuple(
            replace(mix, parts=(number[mix.parts[0]], number[mix.parts[1]]))
            for mix in matching.split
        ),
        tuple(replace(mix, whole=number[mix.whole]) for mix in matching.merged),
    )


def on_all_words(
    before: NDArray[np.float64],
    before_words: Vocabulary,
    after: NDArray[np.float64],
    after_words: Vocabulary,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Map topics over two vocabularies to the same rows, so that they can be compared.

    Returns (common + 2, k) and (common + 2, l) float64 from (n, k) and (m, l) distributions over
    words. Each word that is in both vocabularies has a row. For each vocabulary, the words that
    only it contains are summed in one row, which is zero for topics of the other vocabulary. The
    total variations between topics are then the same as over all words of the two vocabularies.

    Examples
    --------
    >>> sea, ship = Vocabulary(("sea", "law"), core=1), Vocabulary(("law", "ship"), core=1)
    >>> one, two = on_all_words(np.eye(2), sea, np.eye(2), ship)
    >>> one.tolist(), two.tolist()
    ([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    """
    common = [term for term in before_words.terms if term in after_words.index]
    mine = [before_words.index[term] for term in common]
    theirs = [after_words.index[term] for term in common]
    nothing_before, nothing_after = np.zeros((1, before.shape[1])), np.zeros((1, after.shape[1]))
    one = np.vstack([before[mine], np.delete(before, mine, axis=0).sum(axis=0), nothing_before])
    two = np.vstack([after[theirs], nothing_after, np.delete(after, theirs, axis=0).sum(axis=0)])
    return one, two


def best_mix(
    topic: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[float, float]:
    """Find the share w in [0, 1] for which `w one + (1 - w) other` is nearest to a topic.

    Returns w, and the total variation between this mix and the topic. `topic`, `one` and `other`
    are (n,) float64 distributions over words. `sum |topic - other - w (one - other)|` is convex and
    piecewise linear in w. So its minimum is at the median of `(topic - other) / (one - other)`,
    weighted by `|one - other|`.

    Examples
    --------
    >>> best_mix(np.array([0.25, 0.75]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    (0.25, 0.0)
    """
    step = one - other
    moving = step != 0
    share = 1.0
    if moving.any():
        places = (topic - other)[moving] / step[moving]
        order = np.argsort(places)
        reached = np.cumsum(np.abs(step[moving])[order])
        middle = int(np.searchsorted(reached, reached[-1] / 2))
        share = float(np.clip(places[order][middle], 0.0, 1.0))
    mix = share * one + (1 - share) * other
    return share, float(np.abs(topic - mix).sum() / 2)


def _assigned(distances: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Match rows and columns in pairs so that the sum of the distances is least; return both."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(distances)
    return rows, columns


def _distances(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k, m) total variations between the topics of two models."""
    if len(before) != len(after):
        raise InvalidInput(
            f"topics over {len(before)} and {len(after)} words cannot be compared; compare models "
            "of one vocabulary"
        )
    # take one topic at a time: (n, k, m) numbers would not fit in memory for large vocabularies
    found = [np.abs(after - topic[:, None]).sum(axis=0) / 2 for topic in before.T]
    # because of rounding, a distance can exceed 1
    return np.asarray(np.minimum(np.stack(found), 1.0))


def _lone(topics: Iterable[int], distances: NDArray[np.float64]) -> tuple[LoneTopic, ...]:
    nearest = distances.argmin(axis=1)
    return tuple(
        LoneTopic(topic, int(nearest[topic]), float(distances[topic, nearest[topic]]))
        for topic in topics
    )


def _mixed(
    wholes: NDArray[np.float64],
    others: NDArray[np.float64],
    partners: Mapping[int, int],
    lone: list[int],
    distances: NDArray[np.float64],
    rule: MatchingRule,
) -> tuple[MixedTopic, ...]:
    """Find topics that are a mix of two topics of the other model.

    At least one of the two parts must have no match.
    """
    found = []
    for whole, topic in enumerate(wholes.T):
        own = [partners[whole]] if whole in partners else []
        mixes = []
        for one, other in combinations([*own, *lone], 2):
            share, distance = best_mix(topic, others[:, one], others[:, other])
            alone = min(float(distances[whole, part]) for part in (own or (one, other)))
            mixes.append(MixedTopic(whole, (one, other), share, distance, alone))
        mixes = [
            mix
            for mix in mixes
            if mix.distance <= rule.furthest
            and mix.alone - mix.distance >= rule.nearer
            and rule.least_share <= mix.share <= 1 - rule.least_share
        ]
        if mixes:
            found.append(min(mixes, key=lambda mix: mix.distance))
    return tuple(found)

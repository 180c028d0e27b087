"""Starts: run expectation maximisation on triples from several starts; the best ones continue.

Starts are given (from moments) or random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streaming_moments.models.three_view.triples import Triples
from streaming_moments.models.three_view.triples_em import AnyHidden, after_rounds, spread

FEWEST, MOST = 3, 24  # lower and upper limit of the number of random starts
# The number of random starts is limited: multiplied by the numbers of triples, states and rounds,
# it is at most this. These rounds take about a second.
_WORK = 1e8
# Largest number of elementary steps in all rounds of all starts; they take about two thirds of a
# second. A fit to half of the records may take a third of these steps.
_MOST_WORK = 1.5e9
# Stages of the search, as pairs (n, multiple): the best of every n starts continue, with `rounds`
# times this multiple of rounds.
_RACE = ((1, 0.5), (4, 1), (12, 2))
# The step length of a round is the one of the round before times this factor.
_GROWTH = 1.2


def likelier(
    triples: Triples,
    given: Sequence[AnyHidden],
    rounds: int,
    seed: int = 0,
    drawn: bool = True,
    usual: int | None = None,
) -> tuple[AnyHidden, float, int]:
    """Run rounds from given and random starts; return the best result.

    Every start is run for half of `rounds`. The best quarter of the results is then run for
    `rounds` more, and the best twelfth for twice as many more. There are 24 random starts, but
    fewer for large tables, and none if `drawn` is false. If the `usual` number of rounds would take
    over a second, judged by the numbers of triples and states, all numbers of rounds are reduced in
    proportion.

    Returns the result, its mean log-likelihood of a triple in nats, and `rounds` after this
    reduction.
    """
    rng = np.random.default_rng(seed)
    k = given[0].tables[0].shape[1]
    random = int(_WORK / max(1, triples.kinds * k * rounds))
    number = min(max(random, FEWEST), MOST) if drawn and k > 1 else 0
    begun = [*map(spread, given), *(given[0].drawn(rng) for _ in range(number))]
    going = [(math.ceil(len(begun) / share), of_rounds) for share, of_rounds in _RACE]
    work = triples.work(k) * sum(starts * of_rounds for starts, of_rounds in going)
    most = _MOST_WORK if drawn else _MOST_WORK / 3
    rounds = math.ceil(rounds * min(1, most / max(1.0, work * (usual or rounds))))
    found = [(start, -np.inf) for start in begun]
    for starts, of_rounds in going:
        kept = sorted(found, key=lambda one: -one[1])[:starts]
        more = math.ceil(rounds * of_rounds)
        found = [after_rounds(triples, hidden, more, _GROWTH) for hidden, _ in kept]
    return *max(found, key=lambda one: one[1]), rounds

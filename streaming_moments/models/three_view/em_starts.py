"""Starts of expectation maximisation on triples: spectral and random ones, in one race."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streaming_moments.models.three_view.triples import Triples
from streaming_moments.models.three_view.triples_em import AnyHidden, after_rounds, spread

FEWEST, MOST = 3, 24  # random starts besides the spectral ones
# Triples times states times rounds that all starts together may cost; 10^8 take about a second.
_WORK = 1e8
# Most steps of all rounds together, which take about two thirds of a second. Halves get a third of
# them.
_MOST_WORK = 1.5e9
# Stages: in each, one of this many starts continues, for this multiple of the rounds.
_RACE = ((1, 0.5), (4, 1), (12, 2))
# Factor by which a step grows from round to round.
_GROWTH = 1.2


def likelier(
    triples: Triples,
    given: Sequence[AnyHidden],
    rounds: int,
    seed: int = 0,
    drawn: bool = True,
    usual: int | None = None,
) -> tuple[AnyHidden, float, int]:
    """Best of the given and some random starts, with its nats per triple, and the rounds.

    All starts make half of the rounds, the best quarter then `rounds` more, and the best twelfth
    twice as many more. There are 24 random starts, but fewer for large tables, or none. If the
    `usual` rounds would take over a second, judged by the numbers of triples and states, all rounds
    are reduced in proportion.
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

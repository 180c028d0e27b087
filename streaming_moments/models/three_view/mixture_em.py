"""Expectation maximisation of a mixture of three views, on the counted table of triples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.rows import Rows
from streaming_moments.models.three_view.em_starts import likelier
from streaming_moments.models.three_view.triples import Triples, triple_table, triples_of
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.simplex import as_columns
from streaming_moments.statistics.views.foundation import ViewsFoundation

# Largest number of cells of a table of triples for which rounds are made: 128 words in each view.
_MOST_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Mixture:
    """Parameters of a mixture of three views in rounds on triples; implements `Hidden`.

    rows, left, right : (n, k) float64, distribution of the words of each view in each state
    weights : (k,) float64, shares of the states
    """

    rows: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    weights: NDArray[np.float64]

    __sizeof__ = held_bytes

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """All parameters."""
        return self.rows, self.left, self.right, self.weights

    @classmethod
    def blank(cls, table: NDArray[np.int64], k: int) -> Mixture:
        """Make k equal states, in which words have the same shares as in a table of triples.

        The axes of the table are the words of the middle, left and right view.
        """
        sums = (table.sum(axis=others) for others in ((1, 2), (0, 2), (0, 1)))
        rows, left, right = (np.tile((own / own.sum())[:, None], k) for own in sums)
        return cls(rows, left, right, np.full(k, 1 / k))

    def drawn(self, rng: np.random.Generator) -> Mixture:
        """Draw random parameters of the same shapes as these."""
        k = self.weights.size
        views = self.rows, self.left, self.right
        rows, left, right = (rng.dirichlet(np.ones(len(one)), k).T for one in views)
        return Mixture(rows, left, right, np.full(k, 1 / k))

    def after_round(self, triples: Triples) -> tuple[Mixture, float]:
        """Return the mixture after a round, and the mean log-likelihood of a triple before it."""
        told = triples.posteriors(self.left * self.weights, self.rows, self.right)
        left, right = self.left * told.left, self.right * told.right
        shares = told.middle.sum(axis=0)
        found = Mixture(
            as_columns(told.middle), as_columns(left), as_columns(right), shares / shares.sum()
        )
        return found, told.score


def mixture_of_triples(rows: Rows, options: Any) -> tuple[Mixture, float | None, int] | None:
    """Do as `likelier_mixture` does, but only from random starts.

    Returns None if the statistics have no table of triples, or no rounds are requested.
    """
    foundation: ViewsFoundation = rows.foundation
    if not _has_table(foundation, options):
        return None
    table = triple_table(rows)
    if not table.any():
        return None
    return likelier_mixture(rows, [Mixture.blank(table, options.topics)], options)


def likelier_mixture(
    rows: Rows, given: Sequence[Mixture], options: Any, drawn: bool = True
) -> tuple[Mixture, float | None, int]:
    """Return the mixture that makes the counted triples most likely.

    Rounds of expectation maximisation start from the mixtures `given` and, if `drawn` is true, from
    random ones. Also returns the mean log-likelihood of a triple, and the number of rounds.

    If no rounds are requested, records mix several states, or the statistics have no table of
    triples, the result is the first of the given mixtures, None and 0.
    """
    if not _has_table(rows.foundation, options):
        return given[0], None, 0
    found: tuple[Mixture, float, int] = rows.value(
        rows.once(
            "refining",
            likelier,
            triples_of(triple_table(rows)),
            given,
            options.refine,
            options.seed,
            drawn,
            type(options).refine,
        )
    )
    return found


def _has_table(foundation: ViewsFoundation, options: Any) -> bool:
    """Whether rounds on the table of triples are requested and possible."""
    cells = prod(basis.n_words for basis in foundation.bases)
    asked = options.refine and not options.alpha0
    return bool(asked and foundation.whole and cells <= _MOST_CELLS)

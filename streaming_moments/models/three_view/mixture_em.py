"""Expectation maximisation of a mixture of three views on its triples."""

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

# Largest number of cells of a table of triples: 128 words in each view.
_MOST_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Mixture:
    """Parameters of a mixture of three views, fitted to triples; implements `Hidden`.

    rows, left, right : (n, k) float64, columns on the simplex: words of each view in each state
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
        """Make k equal states with the word shares of a table (middle, left, right) of counts."""
        sums = (table.sum(axis=others) for others in ((1, 2), (0, 2), (0, 1)))
        rows, left, right = (np.tile((own / own.sum())[:, None], k) for own in sums)
        return cls(rows, left, right, np.full(k, 1 / k))

    def drawn(self, rng: np.random.Generator) -> Mixture:
        """Draw random parameters of the same shapes."""
        k = self.weights.size
        views = self.rows, self.left, self.right
        rows, left, right = (rng.dirichlet(np.ones(len(one)), k).T for one in views)
        return Mixture(rows, left, right, np.full(k, 1 / k))

    def after_round(self, triples: Triples) -> tuple[Mixture, float]:
        """Return the mixture after a round, and the nats per triple of the mixture before it."""
        told = triples.posteriors(self.left * self.weights, self.rows, self.right)
        left, right = self.left * told.left, self.right * told.right
        shares = told.middle.sum(axis=0)
        found = Mixture(
            as_columns(told.middle), as_columns(left), as_columns(right), shares / shares.sum()
        )
        return found, told.score


def mixture_of_triples(rows: Rows, options: Any) -> tuple[Mixture, float | None, int] | None:
    """Do as `likelier_mixture` does, from random starts alone; None without triples or rounds."""
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
    """Return the best mixture for the table of triples, its nats per triple, and the rounds.

    Rounds start from the given mixtures and, if `drawn` is true, from random ones. If no rounds are
    requested, states are mixed, or the statistics have no table, it returns the first given
    mixture, None and 0.
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

"""Passes: expectation maximisation of a mixture over rows that are rounded to a grid.

The sums of a pass are integers, so that they are exact in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.provenance import Polishing
from streaming_moments.statistics.vectors.grid import SUM_BITS, Grid, rounded_for_sums
from streaming_moments.statistics.vectors.rows import VectorBatch

ROW = 1 << 16
"""Number of integer units that each row divides among the components."""
_MOST = 1 << 62
_EXACT = 1 << 53  # integers up to this one are exact in float64
_ROWS = 1024  # most rows that are read at a time
# variance that rounding of coordinates to the grid adds, in squared steps of the grid
_ROUNDING = 1 / 12
# No variance is below this share of the mean variance, or of the variance from rounding to the grid
# if that is larger.
_LEAST_VARIANCE = 1e-3
# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = (ROW, SUM_BITS)


@dataclass(frozen=True, eq=False)
class ExpectedRows:
    """Expected sums of a pass over rows, in integers, so that they are exact in any order.

    All numbers but `rows` are in units of 2^-16.

    counts : (k,) int64, expected number of rows of each component
    first : (k, d) int64, sum of the rows of each component, in steps of the grid
    squares : (k, 1) or (k, d) int64, sum of the squared norms of the rows of each component, or of
        the squares of each coordinate
    log_likelihood : sum of the log-likelihoods of all rows
    rows : number of rows read
    """

    counts: NDArray[np.int64]
    first: NDArray[np.int64]
    squares: NDArray[np.int64]
    log_likelihood: int = 0
    rows: int = 0

    @classmethod
    def zero(cls, model: GaussianMixture) -> ExpectedRows:
        """Return empty sums."""
        like = model.weights, model.means, model.variances
        counts, first, squares = (np.zeros(one.shape, dtype=np.int64) for one in like)
        return cls(counts, first, squares)

    @property
    def documents(self) -> int:
        """Number of rows, under the name that jobs use for the number of records of any kind."""
        return self.rows

    tokens = documents

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Return the arrays and numbers from which `from_parts` restores the sums."""
        arrays = {"counts": self.counts, "first": self.first, "squares": self.squares}
        return arrays, {"rows": self.rows, "log_likelihood": self.log_likelihood}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]
    ) -> ExpectedRows:
        """Restore sums from the arrays and numbers that `parts` returned."""
        return cls(
            arrays["counts"],
            arrays["first"],
            arrays["squares"],
            numbers["log_likelihood"],
            numbers["rows"],
        )

    def add(self, other: ExpectedRows) -> ExpectedRows:
        """Add the sums over other rows to these in place.

        Raises BoundExceeded if a sum would exceed 2^62.
        """
        # check only the squares, because they are the largest sums and never negative
        if int(self.squares.max(initial=0)) + int(other.squares.max(initial=0)) >= _MOST:
            raise BoundExceeded(
                f"sums of squares of {self.rows + other.rows:,} rows exceed 2^62; polish with "
                "fewer shards"
            )
        for own, added in zip(self.arrays, other.arrays, strict=True):
            np.add(own, added, out=own)
        return replace(
            self,
            log_likelihood=self.log_likelihood + other.log_likelihood,
            rows=self.rows + other.rows,
        )

    @property
    def arrays(self) -> tuple[NDArray[np.int64], ...]:
        """Arrays of the sums."""
        return self.counts, self.first, self.squares


@dataclass(frozen=True, eq=False)
class MixtureReader:
    """Mixture that is prepared for reading rows whose coordinates are integers of a grid.

    What a row adds to the sums does not depend on other rows of its batch. For this, the parameters
    are rounded so that float64 multiplies and adds them without further rounding.
    """

    model: GaussianMixture
    grid: Grid
    _linear: NDArray[np.float64] = field(init=False, repr=False)
    _precisions: NDArray[np.float64] = field(init=False, repr=False)
    _constant: NDArray[np.float64] = field(init=False, repr=False)
    _at_a_time: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.model.dimension != self.grid.dimension:
            raise ForeignStatistics(
                f"the mixture has {self.model.dimension} dimensions, but the grid has "
                f"{self.grid.dimension}; read rows of the store that the mixture was fitted to"
            )
        precisions = self.grid.step**2 / self.model.variances
        means = (self.model.means - self.grid.offset) / self.grid.step
        turned = means * precisions
        # rounding of coordinates can lengthen a row by at most the last two terms
        reach = self.grid.radius + self.grid.dimension**0.5 + 1
        with np.errstate(divide="ignore"):
            constant = np.log(self.model.weights) - (np.square(means) * precisions).sum(axis=1) / 2
        alike = self.grid.dimension / precisions.shape[1]
        constant -= alike * np.log(2 * np.pi * self.model.variances).sum(axis=1) / 2
        held = {
            "_linear": rounded_for_sums(turned, reach * np.linalg.norm(turned, axis=1).max()),
            "_precisions": rounded_for_sums(precisions, reach**2 * precisions.max()),
            "_constant": constant,
            "_at_a_time": max(1, min(_ROWS, int(_EXACT / (ROW * reach**2)))),
        }
        for name, value in held.items():
            object.__setattr__(self, name, value)

    def add(self, batch: VectorBatch, total: ExpectedRows) -> ExpectedRows:
        """Add the rows of a batch to `total` in place; raises the same errors as `add_rows`."""
        rows, norms, _ = self.grid.quantised(batch.values)
        return self.add_rows(rows, norms, total)

    def add_rows(
        self, rows: NDArray[np.int16], norms: NDArray[np.int64], total: ExpectedRows
    ) -> ExpectedRows:
        """Add rows, already rounded to the grid, and their squared norms to `total` in place.

        Raises BoundExceeded in the same cases as `ExpectedRows.add`.
        """
        for start in range(0, len(rows), self._at_a_time):
            part = slice(start, start + self._at_a_time)
            total = total.add(self._expected(rows[part].astype(np.float64), norms[part]))
        return total

    def _expected(self, x: NDArray[np.float64], norms: NDArray[np.int64]) -> ExpectedRows:
        alike = self._precisions.shape[1] == 1
        squares = norms[:, None].astype(np.float64) if alike else np.square(x)
        logs = self._constant + x @ self._linear.T - squares @ self._precisions.T / 2
        top = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - top)
        sums = shares.sum(axis=1, keepdims=True)
        shares = np.rint(shares / sums * ROW)
        likelihoods = np.rint((top + np.log(sums)) * ROW)
        return ExpectedRows(
            shares.sum(axis=0).astype(np.int64),
            (shares.T @ x).astype(np.int64),
            (shares.T @ squares).astype(np.int64),
            sum(map(int, likelihoods.ravel())),
            len(x),
        )


def improved(model: GaussianMixture, expected: ExpectedRows, grid: Grid) -> GaussianMixture:
    """Return the mixture of maximum likelihood, given the expected sums of a pass.

    A component without rows keeps its mean and variance. Components keep their order, also if their
    weights no longer decrease.
    """
    counts = expected.counts.astype(np.float64)
    seen = counts > 0
    divisor = np.where(seen, counts, 1.0)[:, None]
    means, d = expected.first / divisor, grid.dimension
    rounding = 0.0 if grid.whole else _ROUNDING
    alike = expected.squares.shape[1] == 1
    inner = np.square(means).sum(axis=1, keepdims=True) if alike else np.square(means)
    spreads = (expected.squares / divisor - inner) / (d if alike else 1)
    if model.covariance.startswith("tied"):
        spreads = np.tile(counts @ spreads / counts.sum(), (len(counts), 1))
        seen_spread = np.ones(len(counts), dtype=bool)
    else:
        seen_spread = seen
    spreads = spreads - rounding
    found = not_too_small(spreads * grid.step**2, counts, grid)
    return replace(
        model,
        means=np.where(seen[:, None], grid.values(means), model.means),
        weights=counts / counts.sum(),
        variances=np.where(seen_spread[:, None], found, model.variances),
    )


def not_too_small(
    variances: NDArray[np.float64], counts: NDArray[np.float64], grid: Grid
) -> NDArray[np.float64]:
    """Raise each variance to at least a thousandth of the mean variance of all components.

    `counts` has the number of rows of each component, by which the mean is weighted.
    """
    mean = float(counts @ variances.mean(axis=1) / counts.sum())
    least = _LEAST_VARIANCE * max(mean, _ROUNDING * grid.step**2)
    return np.maximum(variances, least)


def polished(
    model: GaussianMixture, batches: Iterable[NDArray[Any]], grid: Grid, passes: int = 2
) -> GaussianMixture:
    """Improve a mixture by passes of expectation maximisation over rows in memory.

    Parameters
    ----------
    model : GaussianMixture
        Start of the passes.
    batches : iterable of (n, d) arrays
        Rows; batches of any size give the same bits.
    grid : Grid
        Grid of the statistics of the fit.
    passes : int
        Number of passes; 0 leaves the model unchanged.

    Raises
    ------
    InvalidInput
        The number of passes is negative, or there are no rows.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(400, 2)) + np.repeat([[0, 0], [8, 0]], 200, 0)
    >>> begun = GaussianMixture(np.array([[1.0, 1], [6, 1]]), np.array([0.5, 0.5]), np.ones((2, 1)))
    >>> found = polished(begun, [rows], Grid(np.zeros(2), step=0.05, radius=400))
    >>> found.means.round(0) + 0.0
    array([[0., 0.],
           [8., 0.]])
    """
    if passes < 0:
        raise InvalidInput(f"passes is {passes}; give at least 0")
    held = [grid.quantised(one)[:2] for one in batches]
    if not sum(len(rows) for rows, _ in held):
        raise InvalidInput("there are no rows to polish with; give at least one")
    expected = ExpectedRows.zero(model)
    for _ in range(passes):
        reader, expected = MixtureReader(model, grid), ExpectedRows.zero(model)
        for rows, norms in held:
            expected = reader.add_rows(rows, norms, expected)
        model = improved(model, expected, grid)
    if not passes:
        return model
    number = expected.rows
    return replace(model, polishing=Polishing("", passes, False, 0, number, number))


def shape_of(model: GaussianMixture) -> tuple[int, int]:
    """Return the shape (rows, k) of a table that takes as much memory as a pass.

    A pass holds the means, the variances, and the rows that it reads at a time.
    """
    k, d = model.means.shape
    return 2 * d + _ROWS * (d + k) // k, k

"""Numba kernels of expectation maximisation for hidden states behind triples of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

# Allow the compiler to change the order of summation and to fuse products, so that it can use
# vector instructions.
_REORDERED = {"reassoc", "contract", "nsz"}
# An entry of a table is extrapolated only if its ratio to its value in the round before lies
# between these bounds.
_LEAST, _MOST = 1e-3, 1e3


@kernel(fastmath=_REORDERED)
def triple_posteriors(
    cells: NDArray[np.int64],
    counts: NDArray[np.float64],
    before: NDArray[np.float64],
    emission: NDArray[np.float64],
    after: NDArray[np.float64],
    left: NDArray[np.float64],
    middle: NDArray[np.float64],
    right: NDArray[np.float64],
) -> float:
    """Infer the state of the middle word of each triple, and add its probabilities to the sums.

    The model is `P(x1, x2, x3, h2) = before[x1, h2] emission[x2, h2] after[x3, h2]`. `cells` are
    (triples, 3) words, and `counts` say how often each triple occurs. The kernel is fastest if
    cells with the same x1 and x2 are adjacent. Each triple adds to a row of `left`, `middle` and
    `right`: those of its words x1, x2 and x3. What it adds to `left` and `right` is divided by
    `before` and `after`. It returns the log-likelihood of all triples. This is minus infinity if a
    triple is impossible; such a triple adds nothing.
    """
    k = emission.shape[1]
    pair, share = np.empty(k), np.empty(k)
    likelihood = 0.0
    cell = 0
    while cell < cells.shape[0]:
        x1, x2 = cells[cell, 0], cells[cell, 1]
        for j in range(k):
            pair[j] = before[x1, j] * emission[x2, j]
            share[j] = 0.0
        while cell < cells.shape[0] and cells[cell, 0] == x1 and cells[cell, 1] == x2:
            x3 = cells[cell, 2]
            total = 0.0
            for j in range(k):
                total += pair[j] * after[x3, j]
            likelihood += counts[cell] * np.log(total)
            # total is 0 if the last step made the triple impossible, because it was too long; the
            # caller then undoes that step
            factor = counts[cell] / total if total > 0 else 0.0
            for j in range(k):
                share[j] += factor * after[x3, j]
                right[x3, j] += factor * pair[j]
            cell += 1
        for j in range(k):
            left[x1, j] += emission[x2, j] * share[j]
            middle[x2, j] += pair[j] * share[j]
    return likelihood


@kernel()
def step_further(
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    power: float,
    found: NDArray[np.float64],
) -> None:
    """Extrapolate tables: fill `found` with `new (new / old)^power`, and scale columns to sum 1.

    All tables are (n, k). Zeros stay zero, and nothing else becomes zero. A column without a
    positive sum becomes uniform.
    """
    n, k = new.shape
    for i in range(n):
        for j in range(k):
            ratio = new[i, j] / old[i, j] if old[i, j] > 0 else 1.0
            if ratio < _LEAST:
                ratio = _LEAST
            elif ratio > _MOST:
                ratio = _MOST
            found[i, j] = new[i, j] * ratio**power
    for j in range(k):
        total = 0.0
        for i in range(n):
            total += found[i, j]
        for i in range(n):
            found[i, j] = found[i, j] / total if total > 0 else 1.0 / n

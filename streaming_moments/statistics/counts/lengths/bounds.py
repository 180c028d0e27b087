"""Bounds of the error of estimated moments, from the lengths of the documents only.

Notes
-----
Ruffini et al. 2018, Theorem 2, bounds the errors of M2 and M3 by `W2` and `W3`, the sums of the
squared weights of the documents. The constants here are ours; this is their proof.

Let `a_d = w c(c-1)(c-2) / C3` be the weight of document d in the third moment, where w = 1 if
documents are pooled. So `sum_d a_d = 1` and `sum_d a_d^2 = W3`. Then `M3^ = sum_d a_d Y_d` with
independent Y_d of mean M3: Y_d is the mean of `e_i (x) e_h (x) e_l` over the triples of distinct
positions. It is a tensor of non-negative entries with sum 1, so `|Y_d| <= 1` in the Frobenius norm.
The proof is the same for the moments of order 1 and 2.

- Mean: `E |M3^ - M3|^2 = sum_d a_d^2 (E |Y_d|^2 - |M3|^2) <= W3`, so `E |M3^ - M3| <= sqrt W3`.
- Deviation: another document in place of d moves the norm by at most `a_d |Y_d - Y_d'|`, and
  `|Y - Y'|^2 = |Y|^2 + |Y'|^2 - 2 <Y, Y'> <= 2`. McDiarmid's inequality with the differences
  `sqrt 2 a_d` gives `P(|M3^ - M3| >= sqrt W3 + t) <= exp(-t^2 / W3)`.

With probability at least `1 - delta`, therefore,

    |M3^ - M3| <= sqrt(W3) (1 + sqrt(log(1 / delta))).

The bound holds for any model with independent documents whose words are exchangeable, given the
lengths, if the lengths are independent of the topics. If all N documents have one length,
`W3 = 1 / N`, and the bound is that of Hsu, Kakade, Zhang 2012, Proposition 19. Estimators that
weigh documents equally have `W3 = 1 / N` for any lengths.
"""

from __future__ import annotations

import math

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram


def concentration(lengths: LengthHistogram, order: int = 3) -> float:
    """Return the sum W of the squared weights of documents in a moment; the weights have sum 1.

    `1 / W` is the effective number of documents, which is N if all documents have equal weights.
    The order is 1, 2 or 3 for M1, M2, M3. Raises InvalidInput if no document has that many words.

    Examples
    --------
    >>> concentration(LengthHistogram.of([3, 3, 3, 3]))
    0.25
    """
    if order not in (1, 2, 3):
        raise InvalidInput(f"the order is {order}; there are moments of order 1, 2 and 3")
    if lengths.longest < order:
        raise InvalidInput(
            f"none of {lengths.n_documents} documents has {order} words; moment {order} needs "
            "longer documents"
        )
    if order == 1:
        return lengths.falling(1, power=2) / lengths.C1**2
    return lengths.W2 if order == 2 else lengths.W3


def expected_error(lengths: LengthHistogram, order: int = 3) -> float:
    """Return the root of `concentration`, which bounds the mean Frobenius error of a moment.

    Examples
    --------
    >>> expected_error(LengthHistogram.of([3, 3, 3, 3]))
    0.5
    """
    return math.sqrt(concentration(lengths, order))


def error_radius(lengths: LengthHistogram, delta: float, order: int = 3) -> float:
    """Return a bound that holds for the error of the pooled moment with probability `1 - delta`.

    The bound of the Frobenius error is `sqrt(W) (1 + sqrt(log(1 / delta)))`, with W of Ruffini et
    al. 2018, Theorem 2. Its constants differ from those of the paper; the notes of this module have
    the proof. delta is in (0, 1). For M2 and M3 together, use half of delta for each. Raises
    InvalidInput if no document has as many words as the order.

    Examples
    --------
    >>> round(error_radius(LengthHistogram.of([50] * 10_000), delta=0.05), 4)
    0.0273
    """
    return expected_error(lengths, order) * _factor(delta)


def _factor(delta: float) -> float:
    if not 0 < delta < 1:
        raise InvalidInput(f"delta is {delta}; it must be between 0 and 1")
    return 1 + math.sqrt(math.log(1 / delta))

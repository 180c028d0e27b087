"""Forms: conversions from the raw moments of words to the moments of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, NotIdentifiable

# Largest allowed alpha0. With larger values, all documents have nearly the same topic shares, so
# topics are not identifiable.
_LARGEST_ALPHA0 = 1e6

Seen = NDArray[np.float64]


class DocumentLengths(Protocol):
    """Totals over documents, computed from their lengths, by which sums of counts are divided."""

    @property
    def is_pooled(self) -> bool: ...
    @property
    def weight(self) -> float: ...
    @property
    def C1(self) -> float: ...
    @property
    def C2(self) -> float: ...
    @property
    def C3(self) -> float: ...


class Form:
    """Conversion of raw moments to the moments of a mixture with columns m_j and weights w_j.

    M1, M2 and M3 are the raw moments of single words, pairs and triples of words.

    The second moment is `A = sum_j w_j m_j (x) m_j`, computed as `M2 - a M1 M1'`. The third is
    `sum_j w_j m_j (x) m_j (x) m_j`, computed from M1, M2 and M3. These corrections are linear. So a
    form can be applied to whole tensors, to whitened slices, and to diagonals of slices. This base
    class is for documents with one topic each, whose word counts need no correction.
    """

    alpha0: float = 0.0

    @property
    def mean_share(self) -> float:
        """The factor a in the corrected second moment `A = M2 - a M1 M1'`."""
        return 0.0

    def totals(self, lengths: DocumentLengths) -> tuple[float, float, float]:
        """Return the divisors of the sums over words, over word pairs and over word triples.

        See Ruffini et al. 2018, Theorem 1.
        """
        return lengths.C1, lengths.C2, lengths.C3

    def third(self, raw: Seen, crossed: Callable[[], Seen], cubes: Callable[[float], Seen]) -> Seen:
        """Correct the third moment M3, or the result of a linear map of it, such as its slices.

        Overwrites `raw`.

        Parameters
        ----------
        raw : float64 array
            M3, or the result of a linear map of it.
        crossed : callable
            Returns the result of the same map for the sum of `M2 (x) M1` over the three places of
            M1.
        cubes : callable
            Returns the result of the same map for `M1 (x) M1 (x) M1`, times its argument.
        """
        return raw


@dataclass(frozen=True)
class Mixture(Form):
    """Documents of one topic each, whose moments need no correction."""


@dataclass(frozen=True)
class PerDocument(Form):
    """Documents of one topic each, in which each word has an independent Poisson count.

    The columns of the mixture are the rates of the words, not distributions.
    """

    def totals(self, lengths: DocumentLengths) -> tuple[float, float, float]:
        """Return the number of documents as each of the three divisors, whatever the lengths.

        The mean product of the counts of two different words, `E[x_i x_l | topic] = m_ij m_lj`,
        does not depend on the length of the document. Raises NotIdentifiable if documents are
        weighted by their lengths.
        """
        require_pooled(lengths)
        return lengths.weight, lengths.weight, lengths.weight


@dataclass(frozen=True)
class Dirichlet(Form):
    """Latent Dirichlet allocation (Ruffini et al. 2018, Theorem 3).

    Let a0 be the sum of the Dirichlet parameters, `omega = alpha / a0` and
    `w_j = omega_j / (a0 + 1)`. Then the moments of a mixture are::

        A = M2 - a0/(a0+1) M1 M1'
        T = (a0+2)/2 [ M3 - a0/(a0+2) (sum of M2 (x) M1 over the three places of M1)
                       + 2 a0^2/((a0+1)(a0+2)) M1 (x) M1 (x) M1 ]

    Parameters
    ----------
    alpha0 : float
        The sum a0 of the Dirichlet parameters.

    Raises
    ------
    InvalidInput
        alpha0 is not in 0 to 1e6.
    """

    alpha0: float = field()

    def __post_init__(self) -> None:
        if not 0 <= self.alpha0 <= _LARGEST_ALPHA0:
            raise InvalidInput(f"alpha0 is {self.alpha0}; give 0 to {_LARGEST_ALPHA0:,.0f}")

    @property
    def mean_share(self) -> float:
        """`a0 / (a0 + 1)`, the factor of `M1 M1'` in the corrected second moment."""
        return self.alpha0 / (self.alpha0 + 1)

    def third(self, raw: Seen, crossed: Callable[[], Seen], cubes: Callable[[float], Seen]) -> Seen:
        """Correct the third moment M3 to T, as in the docstring of the class."""
        a0 = self.alpha0
        raw -= a0 / (a0 + 2) * crossed()
        raw += cubes(2 * a0**2 / ((a0 + 1) * (a0 + 2)))
        raw *= (a0 + 2) / 2
        return raw


def require_pooled(lengths: DocumentLengths) -> None:
    """Raise NotIdentifiable if documents are weighted by length.

    Called for models in which the length of a document depends on its topics.
    """
    if not lengths.is_pooled:
        raise NotIdentifiable(
            "documents are weighted by length, but in this model the length depends on the topic",
            "gather the statistics with {create.length_weights:pooled}",
        )


def form_of(alpha0: float) -> Form:
    """Return the form for alpha0: one topic for each document if 0, else LDA.

    Raises the errors of `Dirichlet`.

    Examples
    --------
    >>> form_of(0.0), form_of(0.5)
    (Mixture(), Dirichlet(alpha0=0.5))
    """
    return Dirichlet(float(alpha0)) if alpha0 else Mixture()

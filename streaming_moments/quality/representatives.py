"""Representatives: documents that speak most clearly for each topic, rows nearest to each mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput

_DEVIATIONS = 1.96  # of a bound that holds with probability 97.5%


@dataclass(frozen=True)
class Representative:
    """A document that speaks for a topic.

    Parameters
    ----------
    id, source : str
        What it is called, and the shard that holds it.
    row : int
        Its number in the shard, from 0.
    share, bound : float
        Of the topic in it, and below which that hardly is (see `share_bounds`).
    length : int
        In vocabulary tokens.
    text : str
        How it begins; empty for token ids.
    """

    id: str
    source: str
    row: int
    share: float
    bound: float
    length: int
    text: str = ""


@dataclass(frozen=True)
class Representatives:
    """The documents that speak most clearly for each topic.

    Parameters
    ----------
    number : int
        Of each topic at most.
    topics : tuple of tuple of Representative
        By topic, the highest bound first, then by source and row.

    Examples
    --------
    >>> one = Representative("a", "s", 0, share=0.9, bound=0.8, length=40)
    >>> two = Representative("b", "s", 1, share=0.9, bound=0.7, length=20)
    >>> both = Representatives(1, ((two,),)).joined(Representatives(1, ((one,),)))
    >>> [document.id for document in both.topics[0]]
    ['a']
    """

    number: int
    topics: tuple[tuple[Representative, ...], ...] = ()

    def joined(self, other: Representatives) -> Representatives:
        """The best of both, whichever comes first; one without topics yet has none to give.

        Raises
        ------
        InvalidInput
            They are of different numbers of topics.
        """
        if not self.topics or not other.topics:
            return Representatives(self.number, self.topics or other.topics)
        if len(self.topics) != len(other.topics):
            raise InvalidInput(
                f"documents of {len(self.topics)} and of {len(other.topics)} topics; join those of "
                "one model"
            )
        pairs = zip(self.topics, other.topics, strict=True)
        return Representatives(
            self.number,
            tuple(tuple(sorted((*one, *two), key=_place)[: self.number]) for one, two in pairs),
        )


@dataclass(frozen=True, order=True)
class NearRow:
    """A row near the mean of a component.

    Parameters
    ----------
    distance : float
        From the mean.
    source : str
        Shard that holds it.
    row : int
        Of the shard, from 0.
    id : str
        What it is called; empty where nothing is asked for.
    """

    distance: float
    source: str
    row: int
    id: str = ""


def share_bounds(
    proportions: NDArray[np.float64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Lower bounds of shares, so that a few words of a topic tell less than many of them.

    The lower end of the score interval of Wilson (Journal of the American Statistical Association
    22, 1927) at 95%, as if each token had been drawn from the topic or not.

    Parameters
    ----------
    proportions : (documents, k) float64
        Shares of the topics.
    lengths : (documents,) int64
        In tokens; without any the bound is 0.

    Returns
    -------
    (documents, k) float64

    Examples
    --------
    >>> share_bounds(np.array([[1.0], [1.0], [0.9]]), np.array([3, 300, 0])).round(2).tolist()
    [[0.44], [0.99], [0.0]]
    """
    tokens = np.maximum(lengths, 1)[:, None]
    spread = _DEVIATIONS**2 / tokens
    middle = proportions + spread / 2
    reach = np.sqrt(spread * proportions * (1 - proportions) + spread**2 / 4)
    return np.asarray(np.where(lengths[:, None] > 0, (middle - reach) / (1 + spread), 0.0))


def clearest(bounds: NDArray[np.float64], number: int) -> Sequence[NDArray[np.int64]]:
    """Documents of the highest bounds by topic, the first of equals first; none of bound 0.

    Examples
    --------
    >>> [found.tolist() for found in clearest(np.array([[0.2, 0.0], [0.7, 0.0], [0.7, 0.1]]), 2)]
    [[1, 2], [2]]
    """
    found = []
    for column in bounds.T:
        least = 0.0
        if column.size > number:
            least = np.partition(column, column.size - number)[column.size - number]
        places = np.flatnonzero((column >= least) & (column > 0))
        found.append(places[np.argsort(-column[places], kind="stable")][:number])
    return found


def _place(one: Representative) -> tuple[float, str, int]:
    return -one.bound, one.source, one.row

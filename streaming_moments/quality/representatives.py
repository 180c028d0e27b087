"""Representatives: documents that show a topic most clearly, and rows nearest to a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput

_DEVIATIONS = 1.96  # normal quantile for the lower end of a two-sided interval of 95%


@dataclass(frozen=True)
class Representative:
    """Document that represents a topic.

    id, source, row : id of the document, address of its shard, and its row in the shard, from 0
    share : share of the topic in the document
    bound : lower bound of this share (see `share_bounds`)
    length : number of tokens of the document in the vocabulary
    text : beginning of the text of the document; empty if shards hold token ids
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
    """The documents that represent each topic most clearly.

    number : largest number of documents for each topic
    topics : for each topic its documents, those with the highest `bound` first, then by source and
        row

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
        """Merge two collections of documents; keep the clearest documents of each topic.

        The order of the two collections does not matter, and an empty one adds nothing.

        Raises InvalidInput if the collections have different numbers of topics.
        """
        if not self.topics or not other.topics:
            return Representatives(self.number, self.topics or other.topics)
        if len(self.topics) != len(other.topics):
            raise InvalidInput(
                f"documents for {len(self.topics)} and for {len(other.topics)} topics cannot be "
                "joined; join documents of one model"
            )
        pairs = zip(self.topics, other.topics, strict=True)
        return Representatives(
            self.number,
            tuple(tuple(sorted((*one, *two), key=_place)[: self.number]) for one, two in pairs),
        )


@dataclass(frozen=True, order=True)
class NearRow:
    """Row of vectors near the mean of a component, and its distance from this mean.

    source, row : address of the shard, and number of the row in it, from 0
    id : id of the row; empty if ids are not requested
    """

    distance: float
    source: str
    row: int
    id: str = ""


def share_bounds(
    proportions: NDArray[np.float64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return lower bounds of the shares of topics in documents.

    Ranked by these bounds, short documents do not come first by chance. A bound is the lower end of
    the score interval of Wilson (Journal of the American Statistical Association 22, 1927) at 95%,
    as if tokens were independent. The result is (documents, k) float64. `proportions` are
    (documents, k) shares of the topics. `lengths` are (documents,) numbers of tokens; a document
    without tokens has bounds of 0.

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
    """Return, for each topic, the `number` documents with the highest bounds above 0.

    Documents with equal bounds keep their order.

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

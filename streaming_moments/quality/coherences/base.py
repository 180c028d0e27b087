"""Base of the measures of coherence: how often top words of a topic occur in the same documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import top_words
from streaming_moments.printing.short_repr import short_repr

COHERENCE_WORDS = 10  # default number of top words of a topic


@dataclass(frozen=True, eq=False)
class TopWords:
    """Numbers of documents that contain the L top words of each of k topics.

    Parameters
    ----------
    alone : (k, L) float64
        Number of documents with each top word of a topic, the most probable word first.
    together : (k, L, L) float64
        Number of documents with both of two top words of a topic.
    documents : float
        Number of all documents, or their weight if they are weighted.
    """

    alone: NDArray[np.float64]
    together: NDArray[np.float64]
    documents: float

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        topics: NDArray[np.float64],
        document_frequencies: NDArray[Any],
        codocuments: NDArray[Any],
        documents: float,
        number: int,
    ) -> TopWords:
        """Select the counts of the top words of (n, k) topics from those of all words.

        `document_frequencies` (n,) are the numbers of documents with each word, and `codocuments`
        (core, core) the numbers of documents with both of two core words. Each topic gets `number`
        top words.

        Raises
        ------
        InvalidInput
            The number of top words is below two, or above the number of core words.
        """
        core = codocuments.shape[0]
        if not 2 <= number <= core:
            raise InvalidInput(
                f"{number} top words are asked for; coherence needs 2 to {core}, the number of "
                "core words"
            )
        top = top_words(topics[:core], number)
        joint = codocuments[top[:, :, None], top[:, None, :]].astype(np.float64)
        return cls(document_frequencies[top].astype(np.float64), joint, documents)


@dataclass(frozen=True, eq=False)
class Coherence:
    """Measure of coherence, and how it is shown to users. Higher values are better.

    Parameters
    ----------
    key : str
        Key in JSON, columns and stores.
    name : str
        Name for people.
    of : callable
        Computes (k,) float64 from the `TopWords` of k topics.
    digits, mean_digits : int
        Decimals for one topic and for the mean of all.
    compared : tuple of int
        Numbers of top words for which `select` shows the coherence; it plots that of the last
        number.
    followed : bool
        Whether pages, nightly jobs and frames of topics show the coherence, and a gate limits how
        far it may drop.
    bounds : str
        Range of the values, in words; empty if it does not help readers.
    gate, gate_name : str
        Key and name of the gate that limits the drop; by default `max_KEY_drop` and "drop of NAME".
    """

    key: str
    name: str
    of: Callable[[TopWords], NDArray[np.float64]]
    digits: int = 2
    mean_digits: int = 3
    compared: tuple[int, ...] = (COHERENCE_WORDS,)
    followed: bool = True
    bounds: str = ""
    gate: str = ""
    gate_name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", self.gate or f"max_{self.key}_drop")
        object.__setattr__(self, "gate_name", self.gate_name or f"drop of {self.name}")

    @property
    def column(self) -> str:
        """Key of the column for the first number of top words in `compared`."""
        return next(iter(self.columns.values()))[0]

    @property
    def columns(self) -> dict[int, tuple[str, str]]:
        """Key and name for each number of top words in `compared`, as `select` shows them."""
        several = len(self.compared) > 1
        return {
            words: (
                self.key if words == COHERENCE_WORDS else f"{self.key}_{words}",
                f"{self.name} {words}" if several else self.name,
            )
            for words in self.compared
        }


def coherence_of(shown: Any, key: str) -> Any:
    """Return the coherence of a model, a topic or a candidate, by its key; None if unknown.

    Some coherences are fields of the object `shown`, others are in its mapping `coherences`.
    """
    return getattr(shown, key) if key in vars(shown) else shown.coherences.get(key)

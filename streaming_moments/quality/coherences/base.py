"""Coherence: how well the top words of a topic go together in documents; one file for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import top_words
from streaming_moments.printing.short_repr import short_repr

COHERENCE_WORDS = 10  # top words of a topic, where nothing else is said


@dataclass(frozen=True, eq=False)
class TopWords:
    """In how many documents the top words of topics stand.

    Parameters
    ----------
    alone : (k, L) float64
        Documents with each, most probable first.
    together : (k, L, L) float64
        Documents with both of two.
    documents : float
        All of them, or their weight where they are weighted.
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
        """Of the (n, k) topics, from (n,) and (core, core) counts of documents.

        Raises
        ------
        InvalidInput
            Fewer than two top words, or more than the core has.
        """
        core = codocuments.shape[0]
        if not 2 <= number <= core:
            raise InvalidInput(
                f"{number} top words asked for; coherence needs 2 to {core}, the core"
            )
        top = top_words(topics[:core], number)
        joint = codocuments[top[:, :, None], top[:, None, :]].astype(np.float64)
        return cls(document_frequencies[top].astype(np.float64), joint, documents)


@dataclass(frozen=True, eq=False)
class Coherence:
    """A coherence, and how it is shown. Higher is better.

    Parameters
    ----------
    key : str
        In JSON, columns and stores.
    name : str
        As people read it.
    of : callable
        (k,) float64 from the `TopWords` of k topics.
    digits, mean_digits : int
        After the point, of one topic and of the mean of all.
    compared : tuple of int
        Numbers of top words over which `select` compares it; the last is drawn.
    followed : bool
        Whether pages, nights and frames of few columns show it, and a gate bounds its drop.
    bounds : str
        Between which values it lies, in words; empty where that says little.
    gate, gate_name : str
        Of the bound on its drop; by default `max_KEY_drop` and "drop of NAME".
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
        """Key of the first of its `columns`."""
        return next(iter(self.columns.values()))[0]

    @property
    def columns(self) -> dict[int, tuple[str, str]]:
        """Key and name by number of top words, where numbers of topics are compared."""
        several = len(self.compared) > 1
        return {
            words: (
                self.key if words == COHERENCE_WORDS else f"{self.key}_{words}",
                f"{self.name} {words}" if several else self.name,
            )
            for words in self.compared
        }


def coherence_of(shown: Any, key: str) -> Any:
    """The coherence with a key of a model, a topic or a candidate; None where it has none.

    Some have fields of their own, others are in the mapping `coherences`.
    """
    return getattr(shown, key) if key in vars(shown) else shown.coherences.get(key)

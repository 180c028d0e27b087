"""Tokeniser of Chinese by rjieba, with its dictionary and its model of unknown words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1


@dataclass(frozen=True)
class Chinese:
    """Cuts Chinese texts into words; words of other languages in them stay words, too."""

    version: str

    name: ClassVar[str] = "chinese"
    language: ClassVar[str] = "chinese"

    def splitter(self) -> Splitter:
        cut = library("rjieba", self.name).cut
        return lambda text: letters_of(cut(folded_text(text)))


def opened(_: str) -> Chinese:
    """Return the tokeniser; raise InvalidInput if its library is missing."""
    library("rjieba", Chinese.name)
    return Chinese(versions(_RULES, "rjieba"))

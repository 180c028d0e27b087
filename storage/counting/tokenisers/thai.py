"""Tokeniser of Thai by PyThaiNLP: finds the longest words of its dictionary (newmm)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1


@dataclass(frozen=True)
class Thai:
    """Cuts Thai texts into words; words of other languages in them stay words, too."""

    version: str

    name: ClassVar[str] = "thai"
    language: ClassVar[str] = "thai"

    def splitter(self) -> Splitter:
        # the engine newmm finds the longest words; the package includes its dictionary
        cut = library("pythainlp.tokenize", self.name).word_tokenize
        return lambda text: letters_of(cut(folded_text(text), engine="newmm"))


def opened(_: str) -> Thai:
    """Return the tokeniser; raise InvalidInput if its library is missing."""
    library("pythainlp.tokenize", Thai.name)
    return Thai(versions(_RULES, "pythainlp"))

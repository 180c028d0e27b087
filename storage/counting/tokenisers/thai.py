"""Thai words by PyThaiNLP: the longest words of its dictionary (newmm)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1


@dataclass(frozen=True)
class Thai:
    """Cuts Thai texts into words, with the words of other languages in them."""

    version: str

    name: ClassVar[str] = "thai"
    language: ClassVar[str] = "thai"

    def splitter(self) -> Splitter:
        # newmm is maximal matching; the package includes its dictionary
        cut = library("pythainlp.tokenize", self.name).word_tokenize
        return lambda text: letters_of(cut(folded_text(text), engine="newmm"))


def opened(_: str) -> Thai:
    """Return the tokeniser; raise InvalidInput if its library is missing."""
    library("pythainlp.tokenize", Thai.name)
    return Thai(versions(_RULES, "pythainlp"))

"""Tokeniser of Korean by kiwipiepy: nouns, verbs, adjectives and adverbs in dictionary form."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1
# tags of the words that are returned: nouns, verbs, adjectives, adverbs and roots, and words in
# Latin or Chinese letters
_KEPT = ("NN", "VV", "VA", "MA", "XR", "SL", "SH")


@dataclass(frozen=True)
class Korean:
    """Cuts Korean texts into words in dictionary form; drops particles and endings."""

    version: str

    name: ClassVar[str] = "korean"
    language: ClassVar[str] = "korean"

    def splitter(self) -> Splitter:
        tokenize = _kiwi().tokenize

        def split(text: str) -> Iterator[str]:
            kept = (one for one in tokenize(folded_text(text)) if one.tag.startswith(_KEPT))
            return letters_of(one.lemma for one in kept)

        return split


def opened(_: str) -> Korean:
    """Return the tokeniser; raise InvalidInput if its library is missing."""
    library("kiwipiepy", Korean.name)
    return Korean(versions(_RULES, "kiwipiepy", "kiwipiepy-model"))


@functools.cache
def _kiwi() -> Any:
    return library("kiwipiepy", Korean.name).Kiwi(num_workers=1)

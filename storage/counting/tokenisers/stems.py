"""Tokeniser that gives the stems of words, by snowballstemmer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stop_words import LANGUAGE_MAPPING

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokeniser.words import words
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import library, versions

_RULES = 1
_KNOWN = 1 << 16  # a thread caches the stems of at most this many words
_NAME = "stems"


@dataclass(frozen=True)
class Stems:
    """Cuts texts into the stems of their words, such as `hous` for houses.

    It first cuts a text into the words of the default tokeniser.
    """

    language: str
    version: str

    @property
    def name(self) -> str:
        return f"{_NAME}:{self.language}"

    def splitter(self) -> Splitter:
        stem = library("snowballstemmer", _NAME).stemmer(self.language).stemWord
        # cache stems, because the stemmer is written in Python, and texts repeat the same words
        known = lru_cache(maxsize=_KNOWN)(stem)
        return lambda text: map(known, words(text))


def opened(language: str) -> Stems:
    """Return the tokeniser of a language.

    Raises InvalidInput if the library is missing, or has no stems for the language.
    """
    known = library("snowballstemmer", _NAME).algorithms()
    name = LANGUAGE_MAPPING.get(language.lower(), language.lower())
    if name not in known:
        raise InvalidInput(
            f"there are no stems for language {language!r}; choose among {', '.join(known)}"
        )
    return Stems(name, versions(_RULES, "snowballstemmer"))

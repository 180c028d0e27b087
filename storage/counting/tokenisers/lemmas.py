"""Tokeniser that gives the dictionary forms of words, by simplemma."""

from __future__ import annotations

from dataclasses import dataclass

from stop_words import LANGUAGE_MAPPING

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokeniser.words import words
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1
_NAME = "lemmas"


@dataclass(frozen=True)
class Lemmas:
    """Cuts texts into the dictionary forms of their words, such as `house` for houses.

    It first cuts a text into the words of the default tokeniser.
    """

    language: str
    code: str
    version: str

    @property
    def name(self) -> str:
        return f"{_NAME}:{self.language}"

    def splitter(self) -> Splitter:
        lemma, code = library("simplemma", _NAME).lemmatize, self.code
        # fold case again, because in the dictionary German nouns have capitals
        return lambda text: letters_of(lemma(word, code).casefold() for word in words(text))


def opened(language: str) -> Lemmas:
    """Return the tokeniser of a language, by its English name or ISO 639-1 code.

    Raises InvalidInput if the library is missing, or has no lemmas for the language.
    """
    given = language.lower()
    name = LANGUAGE_MAPPING.get(given, given)
    codes = {name: code for code, name in LANGUAGE_MAPPING.items()}
    code = codes.get(name, given)
    simplemma = library("simplemma", _NAME)
    try:
        simplemma.lemmatize("a", code)
    except ValueError as error:
        raise InvalidInput(
            f"there are no lemmas for language {language!r}; give its English name or its ISO "
            f"639-1 code: {error}"
        ) from None
    return Lemmas(name, code, versions(_RULES, "simplemma"))

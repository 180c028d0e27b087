"""Tokeniser of Japanese by SudachiPy with its small dictionary; words are in dictionary form."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import letters_of, library, versions

_RULES = 1
# parts of speech that are dropped: particles, auxiliary verbs, signs and blanks
_DROPPED = frozenset({"助詞", "助動詞", "補助記号", "記号", "空白"})
# SudachiPy accepts texts of at most this many bytes
_MOST_BYTES = 40_000


@dataclass(frozen=True)
class Japanese:
    """Cuts Japanese texts into short units (mode A of Sudachi) in dictionary form.

    Particles, auxiliary verbs and signs are dropped.
    """

    version: str

    name: ClassVar[str] = "japanese"
    language: ClassVar[str] = "japanese"

    def splitter(self) -> Splitter:
        sudachi = library("sudachipy", self.name)
        # make a tokenizer for this thread, because two threads must not use one at once
        tokenize = _dictionary().tokenizer(mode=sudachi.SplitMode.A).tokenize

        def split(text: str) -> Iterator[str]:
            for part in _parts(folded_text(text)):
                kept = (one for one in tokenize(part) if one.part_of_speech()[0] not in _DROPPED)
                # fold case again, because in the dictionary Latin words have capitals
                yield from letters_of(one.dictionary_form().casefold() for one in kept)

        return split


def opened(_: str) -> Japanese:
    """Return the tokeniser; raise InvalidInput if its library or dictionary is missing."""
    _dictionary()
    return Japanese(versions(_RULES, "sudachipy", "sudachidict-small"))


@functools.cache
def _dictionary() -> Any:
    library("sudachidict_small", Japanese.name)
    return library("sudachipy", Japanese.name).Dictionary(dict="small")


def _parts(text: str) -> Iterator[str]:
    """Cut a text into parts that are short enough for Sudachi, at ends of sentences or lines."""
    start, most = 0, _MOST_BYTES // 4
    while len(text) - start > most:
        last = max(text.rfind(end, start, start + most) for end in "。\n .")
        stop = last + 1 if last >= start else start + most
        yield text[start:stop]
        start = stop
    yield text[start:]

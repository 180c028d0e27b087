"""The default tokeniser: words are letters with their marks, found by compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streaming_moments.storage.counting.tokeniser.words import TOKENISER, words
from streaming_moments.storage.counting.tokenisers.base import Splitter

NAME = "words"


@dataclass(frozen=True)
class Compiled:
    """The default tokeniser in Python, for reference; counting calls compiled kernels instead."""

    name: ClassVar[str] = NAME
    version: ClassVar[str] = str(TOKENISER)
    language: ClassVar[str] = ""

    def splitter(self) -> Splitter:
        return words


def opened(_: str) -> Compiled:
    return Compiled()

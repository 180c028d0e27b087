"""Tokeniser that finds words by a regular expression in the case-folded text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter
from streaming_moments.storage.counting.tokenisers.libraries import versions


@dataclass(frozen=True)
class Pattern:
    """Tokeniser whose words are all matches of a pattern, or of its only group, in order."""

    pattern: str

    version: ClassVar[str] = versions(1)
    language: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return f"regex:{self.pattern}"

    def splitter(self) -> Splitter:
        find = re.compile(self.pattern).findall
        return lambda text: find(folded_text(text))


def opened(pattern: str) -> Pattern:
    r"""Return the tokeniser of a pattern; raise InvalidInput if the pattern does not compile.

    Examples
    --------
    >>> list(opened(r"[\w+#]+").splitter()("C++ and C#"))
    ['c++', 'and', 'c#']
    """
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise InvalidInput(f"tokeniser regex:{pattern} cannot be compiled: {error}") from None
    if not pattern:
        raise InvalidInput("tokeniser regex: lacks its pattern, such as regex:[a-z0-9]+")
    if groups > 1:
        raise InvalidInput(
            f"tokeniser regex:{pattern} has {groups} groups; give a pattern with at most one, "
            "and write other groups as (?:...)"
        )
    return Pattern(pattern)

"""Defines what a word is; tests compare the compiled kernels to this reference."""

from __future__ import annotations

import functools
import itertools
import re
import sys
import unicodedata

# Version of this tokeniser, which is part of the fingerprint of a token policy. Increase it with
# any change of the result of `words`.
TOKENISER = 1
LAST_BASIC = 0xFFFF
_BEYOND_BASIC = re.compile("[\U00010000-\U0010ffff]")


def words(text: str) -> list[str]:
    """Split a text into words in order: letters with their marks, case folded and in form NFC.

    Marks are parts of a word, so the vowel signs of Hindi do not split it.

    Examples
    --------
    >>> words("Don't shout: ÉCOLE, हिन्दी, 3rd")
    ['don', 't', 'shout', 'école', 'हिन्दी', 'rd']
    """
    whole = folded_text(text)
    # a text of letters alone is one word: return it without the pattern, which takes long to
    # compile
    if whole.isalpha():
        return [whole]
    # Use ranges above the basic plane only if the text needs them: they make a search seven times
    # as long.
    last = sys.maxunicode if _BEYOND_BASIC.search(whole) else LAST_BASIC
    return _word_pattern(last).findall(whole)


def folded_text(text: str) -> str:
    """Convert a text to the form in which words are compared: case folded and in form NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@functools.cache
def _word_pattern(last: int) -> re.Pattern[str]:
    return re.compile(f"[{_ranges('L', last)}][{_ranges('LM', last)}]*")


def _ranges(categories: str, last: int) -> str:
    points = (p for p in range(last + 1) if unicodedata.category(chr(p))[0] in categories)
    # group adjacent code points: among them, the difference between code point and index is
    # constant
    runs = itertools.groupby(enumerate(points), key=lambda place: place[1] - place[0])
    spans = [[point for _, point in run] for _, run in runs]
    return "".join(f"\\U{span[0]:08x}-\\U{span[-1]:08x}" for span in spans)

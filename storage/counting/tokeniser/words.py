"""Words: what a word of a text is. The reference that the kernels are tested against."""

from __future__ import annotations

import functools
import itertools
import re
import sys
import unicodedata

# Part of the fingerprint: raise it with any change of what `words` returns.
TOKENISER = 1
LAST_BASIC = 0xFFFF
_BEYOND_BASIC = re.compile("[\U00010000-\U0010ffff]")


def words(text: str) -> list[str]:
    """Words of a text in order: letters with their marks, case folded and in form NFC.

    Marks count as parts of a word, so the vowel signs of Hindi do not break one.

    Examples
    --------
    >>> words("Don't shout: ÉCOLE, हिन्दी, 3rd")
    ['don', 't', 'shout', 'école', 'हिन्दी', 'rd']
    """
    whole = folded_text(text)
    if whole.isalpha():  # letters alone: the pattern takes longer to make than a command to begin
        return [whole]
    # The class of all letters is searched range by range above the basic plane: seven times slower.
    last = sys.maxunicode if _BEYOND_BASIC.search(whole) else LAST_BASIC
    return _word_pattern(last).findall(whole)


def folded_text(text: str) -> str:
    """A text as its words are told apart: case folded, in form NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@functools.cache
def _word_pattern(last: int) -> re.Pattern[str]:
    return re.compile(f"[{_ranges('L', last)}][{_ranges('LM', last)}]*")


def _ranges(categories: str, last: int) -> str:
    points = (p for p in range(last + 1) if unicodedata.category(chr(p))[0] in categories)
    # Neighbouring points share their distance from their position among the points.
    runs = itertools.groupby(enumerate(points), key=lambda place: place[1] - place[0])
    spans = [[point for _, point in run] for _, run in runs]
    return "".join(f"\\U{span[0]:08x}-\\U{span[-1]:08x}" for span in spans)

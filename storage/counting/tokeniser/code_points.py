"""Make tables of code points, with which kernels find the same words as `words` does."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.counting.tokeniser import token_kernels
from streaming_moments.storage.counting.tokeniser.words import LAST_BASIC

_MOST_BYTES = 4
_LEAD_BEYOND_BASIC = 0xF0  # smallest first byte of a code point of four bytes
_BLOCK = 64


@functools.cache
def symbols(last: int = sys.maxunicode) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two tables of the code points up to `last`: for raw texts, and for folded texts.

    They are (last + 1,) uint64 arrays; `token_kernels` describes their entries. Like the reference
    tokeniser, they are made with `unicodedata`. To fold a text is, for example, to convert it to
    lower case. A folded text must not be folded again, because that may change it.
    """
    points = np.arange(last + 1, dtype=np.uint64)
    chars = points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    categories = "".join(map(unicodedata.category, chars))
    major = np.frombuffer(categories.encode(), dtype=np.uint8)[::2]
    letters, marks = major == ord("L"), major == ord("M")
    plain = np.zeros_like(points)
    plain[letters | marks] = _spelled(points[letters | marks])
    plain[letters] |= np.uint64(token_kernels.BEGINS)
    # leave out control characters and invalid code points: folding does not change them, and they
    # join no other
    changed = _changed("".join(map(chr, np.flatnonzero(major != ord("C")).tolist())))
    near: dict[str, int] = {}
    joined, joins = token_kernels.JOINED, token_kernels.JOINS
    for char in map(chr, np.flatnonzero(marks).tolist()):
        near[char] = unicodedata.combining(char) << token_kernels.CLASS_AT
    for char in filter(_is_composed, changed):
        parts = unicodedata.normalize("NFD", char)
        for starter in (char, parts[0]):
            near[starter] = near.get(starter, 0) | joined
        for other in parts[1:]:
            near[other] = near.get(other, 0) | joins
    folding = plain.copy()
    for char, flags in near.items():
        folding[ord(char)] |= np.uint64(flags)
    for char in changed:
        fold = char.casefold()
        if _composed(char) != char:
            folding[ord(char)] = token_kernels.HARD
        elif char != fold:
            folding[ord(char)] = _folding(char, fold, int(plain[ord(fold[0])]), near)
    folding.flags.writeable = plain.flags.writeable = False
    return folding, plain


def symbols_of(data: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the two tables of `symbols`; they are as large as the texts in `data` (UTF-8) need.

    Texts without code points beyond the basic plane get the smaller tables, which take a fifth of
    the time to make.
    """
    beyond = data.max(initial=0) >= _LEAD_BEYOND_BASIC
    return symbols(sys.maxunicode if beyond else LAST_BASIC)


def _changed(text: str) -> list[str]:
    # Returns characters that normalisation or folding changes. Most blocks of characters have none
    # of these, and are skipped as a whole.
    blocks = (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))
    return [char for block in blocks if _changes(block) for char in block if _changes(char)]


def _changes(text: str) -> bool:
    return not unicodedata.is_normalized("NFD", text) or text.casefold() != text


def _is_composed(char: str) -> bool:
    return _composed(char) == char and not unicodedata.is_normalized("NFD", char)


def _spelled(points: NDArray[np.uint64]) -> NDArray[np.uint64]:
    size, spelled = np.ones_like(points), points.copy()
    for more, (least, lead) in enumerate(((0x80, 0xC0), (0x800, 0xE0), (0x10000, 0xF0)), start=2):
        longer = points >= least
        octets = points[longer] >> np.uint64(6 * (more - 1)) | np.uint64(lead)
        for place in range(1, more):
            tail = points[longer] >> np.uint64(6 * (more - 1 - place)) & np.uint64(63)
            octets |= (tail | np.uint64(0x80)) << np.uint64(8 * place)
        size[longer], spelled[longer] = more, octets
    return spelled | size << np.uint64(token_kernels.SIZE_AT)


def _folding(char: str, fold: str, plain: int, near: Mapping[str, int]) -> int:
    # A character such as the sharp s folds to several code points. This is allowed if all of these
    # are letters, because normalisation never changes the order of letters.
    several = len(fold) > 1 and not all(unicodedata.category(one)[0] == "L" for one in fold)
    content = fold.encode()
    classes = {unicodedata.combining(one) for one in char + fold}
    if several or len(content) > _MOST_BYTES or len(classes) > 1 or _composed(fold) != fold:
        return token_kernels.HARD
    symbol = plain & token_kernels.BEGINS
    if plain:
        symbol |= int.from_bytes(content, "little") | len(content) << token_kernels.SIZE_AT
    for one in char + fold:
        symbol |= near.get(one, 0)
    return symbol


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)

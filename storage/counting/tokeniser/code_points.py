"""Code points: the entry of each in a table, with which kernels find the same words as `words`."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.counting.tokeniser import token_kernels

_MOST_BYTES = 4


@functools.cache
def symbols() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Entries of all code points, for texts to fold and for folded texts: see token_kernels.

    Two (0x110000,) uint64 arrays, derived from `unicodedata` like the reference tokeniser. Takes
    half a second, once in a process. A folded text must not be folded again, as it may change.
    """
    points = np.arange(sys.maxunicode + 1, dtype=np.uint64)
    majors = "".join(
        [category[0] for category in map(unicodedata.category, map(chr, points.tolist()))]
    )
    major = np.frombuffer(majors.encode(), dtype=np.uint8)
    letters, marks = major == ord("L"), major == ord("M")
    plain = np.where(letters | marks, _spelled(points), np.uint64(0))
    plain[letters] |= np.uint64(token_kernels.BEGINS)
    # control characters and invalid points neither fold nor join
    text = "\n".join(map(chr, np.flatnonzero(major != ord("C")).tolist()))
    forms = (text, _composed(text), unicodedata.normalize("NFD", text), text.casefold())
    rows = list(zip(*(form.split("\n") for form in forms), strict=True))
    near: dict[str, int] = {}
    for char, whole, parts, _ in rows:
        if unicodedata.combining(char):
            near[char] = near.get(char, 0) | unicodedata.combining(char) << token_kernels.CLASS_AT
        if char == whole != parts:
            for joined in (char, parts[0]):
                near[joined] = near.get(joined, 0) | token_kernels.JOINED
            for joins in parts[1:]:
                near[joins] = near.get(joins, 0) | token_kernels.JOINS
    folding = plain.copy()
    for char, whole, _, fold in rows:
        if char != whole or char != fold or char in near:
            symbol = _folding(char, fold, int(plain[ord(fold[0])]), near)
            folding[ord(char)] = token_kernels.HARD if char != whole else symbol
    folding.flags.writeable = plain.flags.writeable = False
    return folding, plain


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
    # several code points, as of a sharp s, are fine if all are letters, so that none is reordered
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

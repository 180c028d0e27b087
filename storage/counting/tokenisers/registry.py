"""Registry of all tokenisers, one line each."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokenisers import function
from streaming_moments.storage.counting.tokenisers.base import (
    Tokeniser,
    TokeniserFailed,
    TokeniserMissing,
    words_by,
)
from streaming_moments.storage.counting.tokenisers.compiled import NAME as COMPILED


@dataclass(frozen=True)
class Family:
    """Tokenisers that have the same name, and differ only in the argument after it.

    file : module in this folder whose function `opened(argument)` returns the tokeniser
    argument : what to write after the name and a colon, as help shows it; empty without argument
    also : another name of the family
    """

    name: str
    file: str
    argument: str = ""
    also: str = ""

    @property
    def opened(self) -> Callable[[str], Tokeniser]:
        """Function that makes a tokeniser of the family from its argument."""
        found: Callable[[str], Tokeniser] = import_module(f"{__package__}.{self.file}").opened
        return found


# A text in several scripts, in upper and lower case, with digits and signs. Another version of a
# tokeniser is likely to find other words in it.
_PROBE = "The ships' 2 CAPTAINS read, in 1492: c++ 10%, Überraß море 法院在海上。東京 한국어는 ไทย"
FAMILIES: tuple[Family, ...] = (
    Family(COMPILED, "compiled"),
    Family("regex", "regex", "PATTERN"),
    Family("chinese", "chinese", also="zh"),
    Family("japanese", "japanese", also="ja"),
    Family("korean", "korean", also="ko"),
    Family("thai", "thai", also="th"),
    Family("lemmas", "lemmas", "LANGUAGE"),
    Family("stems", "stems", "LANGUAGE"),
)


def spellings() -> str:
    """Return the values of `--tokeniser`, for help and errors.

    Examples
    --------
    >>> spellings().partition(", chinese")[0]
    'words, regex:PATTERN'
    """
    named = (f"{one.name}:{one.argument}" if one.argument else one.name for one in FAMILIES)
    return ", ".join((*named, "MODULE:FUNCTION"))


def known_names() -> tuple[str, ...]:
    """Return names of tokenisers, up to the colon before an argument, for completion by a shell.

    Examples
    --------
    >>> known_names()[:3]
    ('words', 'regex:', 'chinese')
    """
    return tuple(f"{one.name}:" if one.argument else one.name for one in FAMILIES)


@functools.cache
def tokeniser_called(name: str) -> Tokeniser:
    """Return the tokeniser with a name, as users give it to `--tokeniser`.

    Raises InvalidInput for an unknown name, or if its library or function cannot be imported.

    Examples
    --------
    >>> tokeniser_called("regex:[a-z]+").version
    '1, words 1'
    """
    before, colon, argument = name.partition(":")
    for family in FAMILIES:
        if before in (family.name, family.also) and bool(colon) == bool(family.argument):
            return family.opened(argument)
    if function.is_name(name):
        return function.opened(name)
    raise InvalidInput(f"there is no tokeniser {name!r}; choose among {spellings()}")


def tokeniser_of(name: str, version: str) -> Tokeniser:
    """Return the tokeniser with which a store counts words.

    Raises TokeniserMissing if the tokeniser is missing on this machine, or has another version
    here.
    """
    try:
        found = tokeniser_called(name)
    except InvalidInput as error:
        raise TokeniserMissing(*error.args) from error
    if found.version != version:
        raise TokeniserMissing(
            f"the store counts words by tokeniser {name} of version {version}, and the machine "
            f"{platform.node()} has version {found.version}; install version {version} there, or "
            "create another store"
        )
    return found


@functools.cache
def probed(name: str) -> str:
    """Return the SHA-256 of the words that a tokeniser finds in a text in several scripts.

    Two processes compare this digest to see whether their tokenisers agree.

    The words are sorted before, because the function of a user may return a set. All tokenisers
    that fail on this text have the same digest.

    Examples
    --------
    >>> probed("words") == probed("regex:[a-z]+")
    False
    """
    try:
        found = sorted(words_by(tokeniser_called(name).splitter(), name, _PROBE))
    except TokeniserFailed:
        found = []
    return hashlib.sha256("\0".join(found).encode()).hexdigest()

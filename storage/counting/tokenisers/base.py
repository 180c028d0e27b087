"""What a tokeniser offers, and how its failures are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import of_number

Splitter = Callable[[str], Iterable[str]]


class Tokeniser(Protocol):
    """Cuts texts into words. Its name and version are part of a store's token policy.

    name : what `--tokeniser` takes, in its one spelling
    version : of everything that affects the words, such as a library and its dictionary
    language : English name of the only language that it cuts, or empty
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def language(self) -> str: ...

    def splitter(self) -> Splitter:
        """Make the function that cuts texts, for one thread."""
        ...


class TokeniserFailed(InvalidInput):
    """A tokeniser failed on a document, or returned other than words."""


class TokeniserMissing(StoreError):
    """The tokeniser of a store cannot be opened here, or has another version than the store's.

    No document is at fault: it is counted where the tokeniser is.
    """


def words_by(split: Splitter, name: str, text: str) -> list[str]:
    """Cut a text by the tokeniser of this name, without empty words.

    Raises TokeniserFailed if `split` fails, or returns other than strings of valid Unicode without
    NUL, which ends words in memory. Errors reach logs, so they have nothing of the text, not even
    in the words of the error of `split`.

    Examples
    --------
    >>> words_by(str.split, "blanks", "law  sea")
    ['law', 'sea']
    """
    try:
        found: object = split(text)
        several = isinstance(found, Iterable) and not isinstance(found, str | bytes)
        listed: list[Any] = [*cast("Any", found)] if several else [found]
    except MemoryError:  # the fault of the machine
        raise
    except Exception as error:
        raise TokeniserFailed(
            f"tokeniser {name} failed on {_named(text)}: {type(error).__name__}"
        ) from None
    if not several or not {*map(type, listed)} <= {str}:
        other = [one for one in listed if not several or not isinstance(one, str)]
        _require_none(other, "a list with " if several else "", name, text)
    # joined, as a look at each word takes longer
    whole = "".join(listed)
    if "\0" in whole or not _is_valid(whole):
        raise TokeniserFailed(
            f"tokeniser {name} returned a word with NUL or a lone surrogate for {_named(text)}; "
            "words are valid Unicode without NUL"
        )
    return [*filter(None, listed)]


def _require_none(other: list[object], within: str, name: str, text: str) -> None:
    for one in other:
        raise TokeniserFailed(
            f"tokeniser {name} returned {within}{type(one).__name__} for {_named(text)}; it must "
            "return a list of str"
        )


def _named(text: str) -> str:
    return f"a document of {of_number(len(text), 'character')}"


def _is_valid(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True

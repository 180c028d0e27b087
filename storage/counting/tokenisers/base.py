"""What a tokeniser offers, and how its failures are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from streaming_moments.errors import InvalidInput

Splitter = Callable[[str], Iterable[str]]
_SHOWN = 40  # characters of a document in an error


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


def words_by(split: Splitter, name: str, text: str) -> list[str]:
    """Cut a text by the tokeniser of this name, without empty words.

    Raises TokeniserFailed, with the beginning of the text, if `split` fails, or returns other than
    strings of valid Unicode without NUL, which ends words in memory.

    Examples
    --------
    >>> words_by(str.split, "blanks", "law  sea")
    ['law', 'sea']
    """
    document = f"the document that begins with {text[:_SHOWN]!r}"
    try:
        found: object = split(text)
        several = isinstance(found, Iterable) and not isinstance(found, str | bytes)
        listed = [*found] if several else []  # type: ignore[misc]
    except Exception as error:
        raise TokeniserFailed(
            f"tokeniser {name} failed on {document}: {type(error).__name__}: {error}"
        ) from error
    other = [one for one in listed if not isinstance(one, str)] if several else [found]
    if other:
        raise TokeniserFailed(
            f"tokeniser {name} returned {'a list with ' if several else ''}"
            f"{type(other[0]).__name__} for {document}; it must return a list of str"
        )
    for word in listed:
        if "\0" in word or not _is_valid(word):
            raise TokeniserFailed(
                f"tokeniser {name} returned the word {word!r} for {document}; words are valid "
                "Unicode without NUL"
            )
    return [word for word in listed if word]


def _is_valid(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True

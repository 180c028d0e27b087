"""The interface of tokenisers, and the errors that are raised when they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Protocol, cast

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import of_number

Splitter = Callable[[str], Iterable[str]]

# The words of a document may together have at most 50 * (length of the document + 1,000)
# characters, where each word counts as one character longer than it is. For comparison: if the
# words are all pieces of 1 to 6 characters of a document, the first factor is 27.
_MOST_TIMES, _AT_LEAST = 50, 1_000
# after each this many words that are read from an iterator, their total size is checked
_AT_ONCE = 1_024


class Tokeniser(Protocol):
    """Cuts texts into words. Its name and version are part of a store's token policy.

    name : value of `--tokeniser`, in canonical spelling
    version : versions of everything that affects the words, such as a library and its dictionary
    language : English name of the language, if the tokeniser is for one language only; else empty
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def language(self) -> str: ...

    def splitter(self) -> Splitter:
        """Make the function that cuts texts into words; each thread needs its own."""
        ...


class TokeniserFailed(InvalidInput):
    """A tokeniser failed on a document, or returned invalid words or too many.

    document : number of the document among several texts, from 1; 0 if only one text was cut
    """

    def __init__(self, reason: str, document: int = 0) -> None:
        super().__init__(f"document {document:,}: {reason}" if document else reason)
        self.reason, self.document = reason, document

    def __reduce__(self) -> tuple[Any, ...]:
        return TokeniserFailed, (self.reason, self.document)

    def after(self, documents: int) -> TokeniserFailed:
        """Return this error for a document that `documents` further documents precede."""
        return TokeniserFailed(self.reason, self.document + documents)


class TokeniserMissing(StoreError):
    """The tokeniser of a store is missing on this machine, or has another version.

    The documents are not to blame: a machine that has the tokeniser can count them.
    """


def words_by(split: Splitter, name: str, text: str) -> list[str]:
    """Cut a text into words with `split`, the tokeniser called `name`, and drop empty words.

    Words must be strings of valid Unicode without NUL, which marks the end of a word in memory.
    Raises TokeniserFailed if `split` fails, or if its words together are more than about fifty
    times as long as the text. The error may be logged, so it contains neither the text nor the
    message of an error of `split`.

    Examples
    --------
    >>> words_by(str.split, "blanks", "law  sea")
    ['law', 'sea']
    """
    most = _MOST_TIMES * (len(text) + _AT_LEAST)
    try:
        found: object = split(text)
        several = isinstance(found, Iterable) and not isinstance(found, str | bytes)
        listed: list[Any] = _bounded_list(cast("Any", found), most) if several else [found]
    except MemoryError:  # not a failure of the tokeniser: the machine has too little memory
        raise
    except Exception as error:
        raise TokeniserFailed(
            f"tokeniser {name} failed on {_named(text)}: {type(error).__name__}"
        ) from None
    if not several or not {*map(type, listed)} <= {str}:
        other = [one for one in listed if not several or not isinstance(one, str)]
        _require_none(other, "a list with " if several else "", name, text)
    # check all words joined to one text, which is faster than to check each word
    whole = "".join(listed)
    if len(whole) + len(listed) > most:
        raise TokeniserFailed(
            f"tokeniser {name} returned {of_number(len(listed), 'word')} of {len(whole):,} "
            f"characters or more for {_named(text)}; the number of words plus that of characters "
            f"must be at most {most:,}"
        )
    if "\0" in whole or not _is_valid(whole):
        raise TokeniserFailed(
            f"tokeniser {name} returned a word with NUL or a lone surrogate for {_named(text)}; "
            "words are valid Unicode without NUL"
        )
    return [*filter(None, listed)]


def _bounded_list(found: Iterable[Any], most: int) -> list[Any]:
    """List the words of an iterable, up to about `most` characters, because it may be infinite."""
    if isinstance(found, list):
        return found
    listed, size, several = list[Any](), 0, iter(found)
    while size <= most and (part := [*islice(several, _AT_ONCE)]):
        listed += part
        size += sum(len(one) if isinstance(one, str) else 0 for one in part) + len(part)
    return listed


def _require_none(other: list[object], within: str, name: str, text: str) -> None:
    for one in other:
        raise TokeniserFailed(
            f"tokeniser {name} returned {within}{type(one).__name__} for {_named(text)}; it must "
            "return a list of str"
        )


def _named(text: str) -> str:
    return f"a text of {of_number(len(text), 'character')}"


def _is_valid(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True

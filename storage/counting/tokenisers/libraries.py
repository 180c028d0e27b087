"""Import optional packages that tokenisers need; a store records the versions of these packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.extras import needs
from streaming_moments.storage.counting.tokeniser.words import TOKENISER, words


def library(module: str, extra: str) -> Any:
    """Import a module that an extra installs; the extra is called like the tokeniser."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidInput(
            f"{needs(f'tokeniser {extra}', error.name or module, extra)} on each machine that "
            "counts documents"
        ) from error


def versions(rules: int, *packages: str) -> str:
    """Return the version of a tokeniser: the versions of its rules, of `words` and of its packages.

    Call this only once, when the packages are imported: on disk, a package may be replaced while
    the process runs.

    Examples
    --------
    >>> versions(1)
    '1, words 1'
    """
    installed = (f"{name} {version(name)}" for name in packages)
    return ", ".join((str(rules), f"words {TOKENISER}", *installed))


def letters_of(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the words in pieces of a folded text; drop punctuation, digits and blanks.

    Examples
    --------
    >>> list(letters_of(["law", ",", " ", "3rd"]))
    ['law', 'rd']
    """
    for piece in pieces:
        if piece.isalpha():
            yield piece
        elif len(piece) > 1:  # a single sign or mark is no word
            yield from words(piece)

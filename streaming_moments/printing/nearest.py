"""Finds the known name that an unknown one may mean, for messages that suggest it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# A guess needs at least this similarity: that of two names of eight letters, with two letters
# swapped. Most guesses of lower similarity were wrong.
_ALIKE = 0.75
_SHORTEST = 3  # a name needs this many letters to suggest a longer name that begins or ends with it


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another name; None if none is near.

    A longer name that begins or ends with the other is near. Dashes before options and slashes
    around paths are ignored.

    Examples
    --------
    >>> nearest("--schedular", ["--scheduler", "--shards"]), nearest("--quench", ["--quiet"])
    ('--scheduler', None)
    >>> nearest("file", ["textfile"])
    'textfile'
    """
    plain, names = _plain(given), {_plain(one): one for one in known}
    near = get_close_matches(plain, names, 1, _ALIKE)
    if not near and len(plain) >= _SHORTEST:
        near = [one for one in names if one.startswith(plain) or one.endswith(plain)]
    return names[near[0]] if near else None


def guess(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question whether the nearest known name was meant, or `otherwise` if none is near.

    Examples
    --------
    >>> guess("topcis", ["seed", "topics"]), guess("fish", ["seed"], "only seed")
    ("did you mean 'topics'?", 'only seed')
    """
    near = nearest(given, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def _plain(name: str) -> str:
    return name.strip("-/")

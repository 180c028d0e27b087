"""Find the known name that an unknown name may mean, for messages that suggest it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# A name is suggested only if its similarity is at least this, as for two names of eight letters
# that differ by two swapped letters. Most suggestions of lower similarity were wrong.
_ALIKE = 0.75
# an unknown name needs this many letters before a longer name that begins or ends with it is
# suggested
_SHORTEST = 3


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like the given name; None if no known name is near.

    A known name is also near if it begins or ends with the given one. Dashes before options and
    slashes around paths are ignored.

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
    """Ask whether the nearest known name was meant; return `otherwise` if none is near."""
    near = nearest(given, known)
    return otherwise if near is None else f"did you mean {near!r}?"


def _plain(name: str) -> str:
    return name.strip("-/")

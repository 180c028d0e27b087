"""Deprecation: a name or an option works for one more minor release, and says what to use."""

from __future__ import annotations

import warnings


class Deprecated(DeprecationWarning):
    """Something of this package that a later release lacks."""


def warn_deprecated(what: str, since: str, removed_in: str, instead: str, level: int = 2) -> None:
    """Warn, at the caller's caller, that something goes.

    A test fails once `removed_in` is the version of the package and the warning is still there.

    what : the name or option, as users write it
    since : version that warned first
    removed_in : first version without it, at least the minor release after
    instead : what to use
    level : frames between here and the line to name

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("fit(topics=)", "0.3.0", "0.5.0", "n_topics")
    >>> str(told[0].message)
    'fit(topics=) is deprecated since 0.3.0 and goes in 0.5.0; use n_topics'
    """
    text = f"{what} is deprecated since {since} and goes in {removed_in}; use {instead}"
    warnings.warn(text, Deprecated, stacklevel=level + 1)

"""Deprecation: lets old names work for one more minor release, with a warning.

The warning names the replacement.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=type[Any])
F = TypeVar("F", bound=Callable[..., Any])


class Deprecated(DeprecationWarning):
    """Warning about a name or option that a later release removes."""


def warn_deprecated(what: str, since: str, removed_in: str, instead: str, level: int = 2) -> None:
    """Warn that a later release will remove the name or option that the caller used.

    A test fails if the warning still exists when the package reaches version `removed_in`.

    what : the old name or option, as users write it
    since : first version of the package that warned
    removed_in : first version without the name or option, at least one minor release later
    instead : what to use instead
    level : number of stack frames between this function and the line of code that the warning shows

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("fit(topics=)", "0.3.0", "0.5.0", "n_topics")
    >>> str(told[0].message)
    'fit(topics=) is deprecated since 0.3.0 and will be removed in 0.5.0; use n_topics'
    """
    text = f"{what} is deprecated since {since} and will be removed in {removed_in}; use {instead}"
    warnings.warn(text, Deprecated, stacklevel=level + 1)


def renamed_fields(since: str, removed_in: str, **names: str) -> Callable[[C], C]:
    """Accept the old names of some fields of a dataclass, with a warning.

    If a call gives both the old and the new name of a field, the value of the old name is used. The
    reason is that `dataclasses.replace` always passes the present value under the new name.

    since, removed_in : as for `warn_deprecated`
    names : for each old name the new name of the field

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @renamed_fields("0.3.0", "0.4.0", size="n_rows")
    ... @dataclass
    ... class Table:
    ...     n_rows: int
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     Table(size=3).size
    3
    >>> str(told[0].message)
    'Table(size=) is deprecated since 0.3.0 and will be removed in 0.4.0; use n_rows'
    """

    def renamed(owner: C) -> C:
        made, called = owner.__init__, owner.__name__

        @functools.wraps(made)
        def init(self: object, *args: Any, **given: Any) -> None:
            for old in [name for name in given if name in names]:
                warn_deprecated(f"{called}({old}=)", since, removed_in, names[old])
                given[names[old]] = given.pop(old)
            made(self, *args, **given)

        def read(old: str) -> property:
            def value(self: object) -> Any:
                warn_deprecated(f"{called}.{old}", since, removed_in, names[old])
                return getattr(self, names[old])

            return property(value, doc=f"`{names[old]}`, by its old name.")

        cast("Any", owner).__init__ = init
        for name in names:
            setattr(owner, name, read(name))
        return owner

    return renamed


def renamed_arguments(
    since: str, removed_in: str, level: int = 2, **names: str
) -> Callable[[F], F]:
    """Accept the old names of some arguments of a function, with a warning.

    since, removed_in, level : as for `warn_deprecated`; `level` is 2 without other decorators
    names : for each old name the new name of the argument

    Examples
    --------
    >>> @renamed_arguments("0.3.0", "0.4.0", topics="n_topics")
    ... def refit(n_topics: int) -> int:
    ...     return n_topics
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     refit(topics=3)
    3
    >>> str(told[0].message)
    'refit(topics=) is deprecated since 0.3.0 and will be removed in 0.4.0; use n_topics'
    """

    def renamed(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            for old in [name for name in given if name in names and names[name] not in given]:
                warn_deprecated(
                    f"{function.__qualname__}({old}=)", since, removed_in, names[old], level
                )
                given[names[old]] = given.pop(old)
            return function(*args, **given)

        return cast("F", called)

    return renamed

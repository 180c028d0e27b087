"""Late faces: what a package with heavy members exports is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def late(package: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """A `__getattr__` for a package.

    Parameters
    ----------
    package : str
        Its name.
    places : mapping
        Names that it exports, by the module within it that defines them.

    Examples
    --------
    >>> late("streaming_moments", {"errors": ["InvalidInput"]})("InvalidInput")
    <class 'streaming_moments.errors.InvalidInput'>
    """
    module_of = {name: module for module, names in places.items() for name in names}

    def found(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return found

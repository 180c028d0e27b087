"""Tokeniser that is a function of the user; each process that counts documents imports it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any, ClassVar

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokenisers.base import Splitter

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Function:
    """Tokeniser that calls a user's function from a text to its words.

    The function also decides about upper and lower case, and about spelling.
    """

    name: str
    version: str
    cut: Splitter

    language: ClassVar[str] = ""

    def splitter(self) -> Splitter:
        return self.cut


def is_name(text: str) -> bool:
    """Whether a text is `MODULE:FUNCTION`."""
    return _NAME.fullmatch(text) is not None


def opened(name: str) -> Function:
    """Import the function `MODULE:FUNCTION`.

    The name may come from a store that a stranger made, who must not choose which function runs
    here. So the author of the function must have marked it as a tokeniser by an attribute
    `version`, and the function must be defined under this name. Raises InvalidInput otherwise, or
    if the import fails.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = reduce(getattr, path.split("."), import_module(module))
    except Exception as error:
        raise InvalidInput(
            f"tokeniser {name} cannot be imported: {type(error).__name__}: {error}; install its "
            "package on each machine that counts documents, or add its folder to PYTHONPATH there"
        ) from error
    if not inspect.isfunction(found):
        raise InvalidInput(
            f"tokeniser {name} is of type {type(found).__name__}; give a function from str to a "
            "list of str that is defined by `def`"
        )
    if (defined := f"{found.__module__}:{found.__qualname__}") != name:
        raise InvalidInput(f"tokeniser {name} is defined as {defined}; give this name")
    version = vars(found).get("version")
    if not isinstance(version, str) or not version:
        raise InvalidInput(
            f"function {name} is not marked as a tokeniser; set {path}.version = '1' in {module}, "
            "and increase it when the words change"
        )
    return Function(name, version, found)


def name_of(function: Callable[[str], Any]) -> str:
    """Return the name `MODULE:FUNCTION` by which workers can import a function.

    Raises InvalidInput if they cannot, such as for a function that is defined in a notebook or
    within another function.
    """
    module, path = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    name = f"{module}:{path}"
    if module == "__main__" or not is_name(name) or opened(name).cut != function:
        raise InvalidInput(
            f"workers cannot import the tokeniser {name} by its name; define it by `def` in a "
            "module, and give the function, or its name as 'MODULE:FUNCTION'"
        )
    return name

"""A function of one's own: imported by its name wherever documents are counted."""

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
    """A function from a text to its words; it decides about case and spelling."""

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

    A store names it, perhaps the store of a stranger. So only a function serves that its author
    marked as a tokeniser by a `version` of its own, under the name of its definition.

    Raises InvalidInput if it cannot be imported, is no such function, or has another name.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = reduce(getattr, path.split("."), import_module(module))
    except Exception as error:
        raise InvalidInput(
            f"tokeniser {name} cannot be imported: {type(error).__name__}: {error}; install its "
            "package wherever documents are counted, or name its folder in PYTHONPATH there"
        ) from error
    if not inspect.isfunction(found):
        raise InvalidInput(
            f"tokeniser {name} is of type {type(found).__name__}; give a function from str to a "
            "list of str, which `def` defines"
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
    """`MODULE:FUNCTION` of a function that others can import by this name.

    Raises InvalidInput for others, such as those that a notebook or another function defines.
    """
    module, path = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    name = f"{module}:{path}"
    if module == "__main__" or not is_name(name) or opened(name).cut != function:
        raise InvalidInput(
            f"workers cannot import the tokeniser {name} by its name; define it by `def` in a "
            "module of its own, and give it, or its name as 'MODULE:FUNCTION'"
        )
    return name

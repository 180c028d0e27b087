"""Old exports: names that packages exported in version 0.2, but that only modules export now."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from streaming_moments.deprecation import warn_deprecated


def old_exports(package: str, **modules: str) -> None:
    """Let a package still export names that moved to its modules, with a warning.

    modules : for each module, the names that moved to it, separated by blanks
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"{package}.{places[name]}"
        warn_deprecated(f"{package}.{name}", "0.3.0", "0.4.0", f"{module}.{name}")
        return getattr(import_module(module), name)

    vars(sys.modules[package])["__getattr__"] = find

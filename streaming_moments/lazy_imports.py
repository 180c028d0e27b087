"""Lazy imports: let a package import each name that it exports at the first use of this name."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate
from types import MappingProxyType, ModuleType

from streaming_moments.printing.extras import needs

# Pattern of one export, `from MODULE import NAME as NAME`, as ruff formats it. If the line is too
# long, it continues within parentheses.
_EXPORT = re.compile(r"^    from ([\w.]+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


class LazyModule(ModuleType):
    """Module that is loaded at the first access to one of its names.

    Examples
    --------
    >>> LazyModule("streaming_moments.errors").InvalidInput
    <class 'streaming_moments.errors.InvalidInput'>
    """

    def __getattr__(self, name: str) -> object:
        # Do not use importlib.util.LazyLoader, which is not thread-safe before Python 3.12. Import
        # the parent packages of a module first: otherwise, the module may not find its package
        # while another thread still loads this package.
        module = vars(self).get("_loaded")
        if module is None:
            for parent in accumulate(self.__name__.split("."), "{}.{}".format):
                module = import_module(parent)
            vars(self)["_loaded"] = module
        return getattr(module, name)


def attach(
    package: str,
    modules: Sequence[str] = (),
    needs: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let a package import each of its exports at first use; `dir` and `help` list all exports.

    The exports are the imports `from MODULE import NAME as NAME` in the `if TYPE_CHECKING:` block
    of its `__init__.py`. Type checkers, editors and import-linter read the same lines.

    package : `__name__` of the package, which may still be loading
    modules : modules that `from package import module` returns as a `LazyModule`. For modules of
        kernels, numba is then loaded when a kernel first runs.
    needs : for each folder of the package, the optional dependency that its exports need. `dir` and
        `__all__` omit exports that cannot be imported, so that `help` and `import *` work.

    Examples
    --------
    >>> import streaming_moments.quality
    >>> streaming_moments.quality.top_words.__module__
    'streaming_moments.numerics.relevance'
    >>> "npmi_coherence" in dir(streaming_moments.quality)
    True
    """
    module = sys.modules[package]

    @cache
    def exports() -> dict[str, str]:
        return exports_of(package)

    def installed() -> list[str]:
        from importlib.util import find_spec  # imported here because most commands do not need it

        absent = tuple(
            f"{package}.{folder}." for folder, need in needs.items() if find_spec(need) is None
        )
        return sorted(name for name, own in exports().items() if not own.startswith(absent))

    def find(name: str) -> object:
        if name == "__all__":
            return installed()
        if name in modules:
            return LazyModule(f"{package}.{name}")
        # do not read exports for names such as __wrapped__, which Python looks up in every module
        if name.startswith("__") or name not in exports():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _imported(package, exports()[name], name)

    def listed() -> list[str]:
        own = (name for name in vars(module) if name.startswith("__"))
        return sorted({*own, *modules, *installed()})

    vars(module)["__getattr__"] = find
    vars(module)["__dir__"] = listed


def exports_of(package: str) -> dict[str, str]:
    """Return the module that defines each name that a package exports.

    Raises ImportError if the package is installed without its source.
    """
    loader = getattr(sys.modules[package].__spec__, "loader", None)
    source = loader.get_source(package) if loader is not None else None
    if source is None:
        raise ImportError(
            f"{package} is installed without {package.rpartition('.')[2]}/__init__.py, which lists "
            "its exports; install streaming-moments with its source files",
            name=package,
        )
    return {name: module for module, name in _EXPORT.findall(source)}


def _imported(package: str, module: str, name: str) -> object:
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "streaming_moments"):
            raise
        told = (
            needs(f"{package}.{name}", "scikit-learn", "sklearn")
            if missing == "sklearn"
            else f"{package}.{name} needs the package {missing}, which is not installed; run "
            "`pip install streaming-moments`, which installs all that it needs"
        )
        raise ModuleNotFoundError(told, name=error.name) from error

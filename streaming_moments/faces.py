"""Late faces: what a package with heavy members exports is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from types import ModuleType


class LateModule(ModuleType):
    """A module that is loaded when something in it is first asked for.

    Examples
    --------
    >>> LateModule("streaming_moments.errors").InvalidInput
    <class 'streaming_moments.errors.InvalidInput'>
    """

    def __getattr__(self, name: str) -> object:
        # importlib's own lazy loader is not safe among threads before Python 3.12; and a module
        # that is loaded while another thread ends loading its package may not find the package
        module = vars(self).get("_loaded")
        if module is None:
            for parent in accumulate(self.__name__.split("."), "{}.{}".format):
                module = import_module(parent)
            vars(self)["_loaded"] = module
        return getattr(module, name)


def late(
    package: str, places: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> Callable[[str], object]:
    """A `__getattr__` for a package.

    Parameters
    ----------
    package : str
        Its name.
    places : mapping
        Names that it exports, by the module within it that defines them.
    modules : sequence of str
        Modules within it that `from package import module` gives as a `LateModule`, such as those
        of kernels: who imports one does not load numba before a kernel runs.

    Examples
    --------
    >>> late("streaming_moments", {"errors": ["InvalidInput"]})("InvalidInput")
    <class 'streaming_moments.errors.InvalidInput'>
    """
    module_of = {name: module for module, names in places.items() for name in names}

    def found(name: str) -> object:
        if name in modules:
            return LateModule(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{module_of[name]}")
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in ("", "streaming_moments"):
                raise
            raise ModuleNotFoundError(
                f"{package}.{name} needs the package {missing}, which is not installed; install "
                "streaming-moments with its dependencies, or with the extra that has it "
                "(`pip install 'streaming-moments[sklearn]'`)",
                name=error.name,
            ) from error
        return getattr(module, name)

    return found

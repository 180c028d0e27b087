"""Message that says what to install if a package of an optional extra is missing."""

from __future__ import annotations


def needs(what: str, package: str, extra: str) -> str:
    """Say that something needs a package that is not installed, and how to install it.

    Examples
    --------
    >>> needs("--plot", "matplotlib", "plot")
    "--plot needs matplotlib, which is not installed; run `pip install 'streaming-moments[plot]'` \
(`'.[plot]'` in a clone)"
    """
    install = f"`pip install 'streaming-moments[{extra}]'` (`'.[{extra}]'` in a clone)"
    return f"{what} needs {package}, which is not installed; run {install}"

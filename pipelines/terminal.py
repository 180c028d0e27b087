"""The terminal: lines that commands print, in which no name can pass for more than a name."""

from __future__ import annotations

import click

from streaming_moments.errors import printable
from streaming_moments.storage.files.urls import without_secrets


def shown(line: str) -> str:
    r"""A line as people see it: control characters escaped, secrets of URLs blotted out.

    Examples
    --------
    >>> print(shown("left out http://host/a\x1b[2J.txt?sig=7f is empty"))
    left out http://host/a\x1b[2J.txt?sig=*** is empty
    """
    return printable(without_secrets(line))


def say(*lines: str, err: bool = False) -> None:
    """Print lines, on standard error if asked to."""
    for line in lines:
        click.echo(shown(line), err=err)


def tell(line: str) -> None:
    """Print a line on standard error."""
    say(line, err=True)

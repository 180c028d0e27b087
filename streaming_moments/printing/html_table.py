"""Values as HTML tables, for notebooks; without these, notebooks would show raw arrays."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table whose cells are escaped text.

    Examples
    --------
    >>> html_table("1 topic", ["words"], [["<b>sea"]])
    '<table><caption>1 topic</caption><tr><th>words</th></tr><tr><td>&lt;b&gt;sea</td></tr></table>'
    """
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    lines = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in [titles, *lines])
    return f"<table><caption>{html.escape(caption)}</caption>{body}</table>"

"""Drawing: a latent tree as JSON, text or SVG."""

from __future__ import annotations

from html import escape
from typing import Any

# in pixels: height of the line of a node, distance between levels of the tree, left margin, and
# width that names take
_ROW, _STEP, _LEFT, _WIDTH = 22, 90, 20, 180


def as_json(model: Any) -> list[dict[str, Any]]:
    """Describe each node by its name, parent, number of states and their probabilities.

    Every node comes after its parent.
    """
    names = _names(model)
    lengths = _lengths(model)
    found = []
    for place, (node, parent) in enumerate(zip(model.order, model.tree.parents, strict=True)):
        hidden = model.tree.columns[place] < 0
        states = (
            list(range(model.tree.tables[place].shape[1]))
            if hidden
            else list(model.table.categories[node])
        )
        found.append(
            {
                "node": names[node],
                "hidden": hidden,
                "parent": None if parent < 0 else names[model.order[parent]],
                "length": None if parent < 0 else lengths[frozenset((node, model.order[parent]))],
                "states": states,
                "probabilities": model.tree.tables[place].tolist(),
                "errors": None if model.bars is None else model.bars.tables[place].tolist(),
            }
        )
    return found


def as_text(model: Any) -> str:
    """Draw the tree as text, one line for each node.

    In parentheses is the length of the edge from the node to its parent.
    """
    names, lengths = _names(model), _lengths(model)
    below = _below(model)
    lines: list[str] = []

    def draw(place: int, before: str, last: bool) -> None:
        node, parent = model.order[place], model.tree.parents[place]
        if parent < 0:
            lines.append(names[node])
            inner = ""
        else:
            length = lengths[frozenset((node, model.order[parent]))]
            lines.append(f"{before}{'└' if last else '├'}── {names[node]} ({length:.2f})")
            inner = before + ("    " if last else "│   ")
        children = below[place]
        for number, child in enumerate(children):
            draw(child, inner, number == len(children) - 1)

    draw(0, "", True)
    return "\n".join(lines)


def as_svg(model: Any) -> str:
    """Draw the tree as SVG: the root is on the left, and the columns of the table on the right."""
    below, names = _below(model), _names(model)
    places: dict[int, tuple[float, float]] = {}
    leaves = 0

    def put(place: int, depth: int) -> float:
        nonlocal leaves
        if not below[place]:
            height = float((leaves + 1) * _ROW)
            leaves += 1
        else:
            heights = [put(child, depth + 1) for child in below[place]]
            height = sum(heights) / len(heights)
        places[place] = (_LEFT + depth * _STEP, height)
        return height

    put(0, 0)
    width = max(x for x, _ in places.values()) + _WIDTH
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{(leaves + 1) * _ROW}" '
        'font-family="sans-serif" font-size="12">'
    ]
    for place, parent in enumerate(model.tree.parents):
        if parent >= 0:
            (x, y), (above, level) = places[place], places[parent]
            lines.append(f'<path d="M{above:g} {level:g}V{y:g}H{x:g}" fill="none" stroke="#888"/>')
    for place, (x, y) in sorted(places.items()):
        name = escape(names[model.order[place]])
        if model.tree.columns[place] < 0:
            lines.append(f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="#4477aa"/>')
            lines.append(f'<text x="{x - 5:g}" y="{y - 8:g}">{name}</text>')
        else:
            lines.append(f'<text x="{x + 4:g}" y="{y + 4:g}">{name}</text>')
    return "\n".join([*lines, "</svg>"])


def _names(model: Any) -> dict[int, str]:
    """Return the name of each node: that of its column, or h0, h1, ... for hidden nodes."""
    hidden = [node for node in model.order if node >= model.table.number]
    named = {node: f"h{place}" for place, node in enumerate(hidden)}
    return named | dict(enumerate(model.table.names))


def _lengths(model: Any) -> dict[frozenset[int], float]:
    return {frozenset(edge[:2]): max(float(edge[2]), 0.0) for edge in model.structure.edges}


def _below(model: Any) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in model.order]
    for place, parent in enumerate(model.tree.parents):
        if parent >= 0:
            found[parent].append(place)
    return found

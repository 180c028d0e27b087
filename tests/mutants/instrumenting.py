"""Instrumented sources: each statement within a function reports when it runs.

A file without functions reports once, as it is imported.
"""

import ast
from collections.abc import Sequence

IMPORT = "from hits import hit as _hit"
# what these decorate is not Python when it runs
_COMPILED = ("jit", "njit", "vectorize", "guvectorize")


def instrumented(source: str, file: int) -> str:
    """The source with a call of `hits.hit` before each statement of its functions.

    >>> print(instrumented("def f(x):\\n    return x", 7))
    from hits import hit as _hit
    <BLANKLINE>
    def f(x):
        _hit(7, 2)
        return x
    >>> print(instrumented("x = 1", 7))
    from hits import hit as _hit
    _hit(7, 1)
    x = 1
    """
    tree = ast.parse(source)
    bodies = _bodies(tree)
    _Hits(file).visit(tree)
    first = next((at for at, one in enumerate(tree.body) if not _comes_first(one)), len(tree.body))
    tree.body[first:first] = ast.parse(IMPORT if bodies else f"{IMPORT}\n_hit({file}, 1)").body
    return ast.unparse(ast.fix_missing_locations(tree))


def statements(source: str) -> dict[int, int]:
    """For each line of a statement within a function, the line where the statement begins.

    >>> statements("a = 1\\ndef f(x):\\n    return [\\n        x\\n    ]")
    {3: 3, 4: 3, 5: 3}
    """
    found: dict[int, int] = {}
    for body in _bodies(ast.parse(source)):
        for one in body:
            # of a compound statement its head; what is in it comes later and writes over
            found |= dict.fromkeys(
                range(one.lineno, (one.end_lineno or one.lineno) + 1), one.lineno
            )
    return found


def _bodies(node: ast.AST, within: bool = False) -> list[Sequence[ast.stmt]]:
    """Lists of statements within functions, the outer before the inner."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if _is_compiled(node):
            return []
        within = True
    elif isinstance(node, ast.ClassDef):
        within = False
    found: list[Sequence[ast.stmt]] = []
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if within and isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            found.append(body)
    for child in ast.iter_child_nodes(node):
        found += _bodies(child, within)
    return found


def _is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        getattr(inner, "id", getattr(inner, "attr", None)) in _COMPILED
        for one in node.decorator_list
        for inner in ast.walk(one)
    )


def _comes_first(node: ast.stmt) -> bool:
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return future or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


class _Hits(ast.NodeTransformer):
    def __init__(self, file: int) -> None:
        self.file = file

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for body in _bodies(node):
            body[:] = [made for one in body for made in self._reported(one)]
        return node

    def _reported(self, one: ast.stmt) -> list[ast.stmt]:
        text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        call = ast.parse(f"_hit({self.file}, {one.lineno})").body[0]
        return [one] if text or isinstance(one, ast.Nonlocal | ast.Global) else [call, one]

"""Mutants: a source with one thing changed."""

import ast
import copy
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

PACKAGES = ("streaming_moments", "storage", "pipelines")
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ASSERTIONS = ("frozen", "strict")
# conditions that are not changed as expressions
_PLAIN = ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.Subscript


@dataclass(frozen=True)
class Mutant:
    """A file with one place changed; `within` names the function or class that holds it."""

    path: str
    line: int
    within: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before!r} became {self.after!r}"

    def diff(self, original: str) -> str:
        """The lines that differ, as `diff -U0` prints them, without its header."""
        lines = difflib.unified_diff(original.splitlines(), self.source.splitlines(), n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def changed_lines(diff: str) -> dict[str, set[int]]:
    """Lines that a `git diff --unified=0` adds or changes, by file.

    >>> changed_lines("+++ b/storage/a.py\\n@@ -3,0 +4,2 @@\\n+x\\n+y\\n@@ -9 +11 @@\\n")
    {'storage/a.py': {11, 4, 5}}
    """
    lines: dict[str, set[int]] = {}
    path = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[4:].removeprefix("b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, size = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + size))
    return {path: some for path, some in lines.items() if some}


def mutants_of(path: str, source: str, lines: set[int]) -> Iterator[Mutant]:
    """Mutants of the expressions and statements that begin in some lines.

    >>> [str(one) for one in mutants_of("a.py", "x = 1 < y", {1})]
    ["a.py:1: '1 < y' became '1 <= y'", "a.py:1: '1' became '2'"]
    """
    tree, held = ast.parse(source), source.encode().splitlines(keepends=True)
    within = _names(tree)
    idle = {
        id(inner) for node in ast.walk(tree) for outer in _idle(node) for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if id(node) in idle:
            continue
        for place, changed in _changed(node):
            if place.lineno not in lines:
                continue
            before, after = _segment(held, place), ast.unparse(changed)
            if before != after and _is_source_of(before, place):
                mutated = _replaced(held, place, after)
                yield Mutant(path, place.lineno, within[id(place)], before, after, mutated)


def _segment(lines: list[bytes], node: ast.AST) -> str:
    """Text of a node: `ast.get_source_segment` would split the whole source for each."""
    first, last = node.lineno - 1, node.end_lineno - 1
    if first == last:
        return lines[first][node.col_offset : node.end_col_offset].decode()
    ends = lines[first][node.col_offset :], lines[last][: node.end_col_offset]
    return b"".join([ends[0], *lines[first + 1 : last], ends[1]]).decode()


def _idle(node: ast.AST) -> Iterator[ast.AST]:
    """Parts that do nothing: annotations; `frozen=True` and `strict=True`, which are assertions."""
    parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    if isinstance(node, ast.keyword) and node.arg in _ASSERTIONS:
        parts.append(node.value)
    yield from (part for part in parts if part is not None)


def _is_source_of(text: str, node: ast.AST) -> bool:
    """Whether a text is a node; before Python 3.12 places within f-strings may be wrong."""
    try:
        return ast.unparse(ast.parse(text.strip())) == ast.unparse(node)
    except SyntaxError:
        # `return` and the like parse within a function alone, and are never within an f-string
        return isinstance(node, ast.stmt)


def _names(tree: ast.AST, name: str = "") -> dict[int, str]:
    """Dotted names of the functions and classes around each node, by the id of the node."""
    names = {id(tree): name}
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        name = f"{name}.{tree.name}" if name else tree.name
    for child in ast.iter_child_nodes(tree):
        names |= _names(child, name)
    return names


def _changed(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The node, or the condition in it, and what it becomes, for each change."""
    if isinstance(node, ast.If | ast.While) and isinstance(node.test, _PLAIN):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.comprehension):
        yield from ((some, ast.UnaryOp(ast.Not(), some)) for some in node.ifs)
    else:
        yield from ((node, changed) for changed in _replacements(node))


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one thing changed, for each thing."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OPERATORS:
        yield _with(node, op=_OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            new = [*node.ops[:place], _OPERATORS[type(operator)](), *node.ops[place + 1 :]]
            yield _with(node, ops=new)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Raise | ast.Continue | ast.Break | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))


def _with(node: ast.AST, **parts: object) -> ast.AST:
    made = copy.copy(node)
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def _replaced(lines: list[bytes], node: ast.AST, text: str) -> str:
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    # in brackets it binds as the whole expression did
    new = f"({text})" if isinstance(node, ast.expr) else text
    return b"".join([*lines[:first], head + new.encode() + tail, *lines[last + 1 :]]).decode()

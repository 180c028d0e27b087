"""Mutants of changed lines, and the tests that should notice them."""

import ast
import copy
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGES = ("streaming_moments", "storage", "pipelines")
COPIED = (*PACKAGES, "tests", "deploy", "pyproject.toml", "README.md", "Makefile")
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


@dataclass(frozen=True)
class Mutant:
    """A file with one place changed."""

    path: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before!r} became {self.after!r}"


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
    tree = ast.parse(source)
    # an annotation does nothing
    idle = {
        id(inner)
        for node in ast.walk(tree)
        for outer in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if outer is not None
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if getattr(node, "lineno", None) not in lines or id(node) in idle:
            continue
        for changed in _changed(node):
            before = ast.get_source_segment(source, node)
            after = ast.unparse(changed)
            if before is not None:
                mutated = _replaced(source, node, after)
                yield Mutant(path, node.lineno, before, after, mutated)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
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


def _replaced(source: str, node: ast.AST, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    # in brackets it binds as the whole expression did
    new = f"({text})" if isinstance(node, ast.expr) else text
    return b"".join([*lines[:first], head + new.encode() + tail, *lines[last + 1 :]]).decode()


def tests_of(path: str, root: Path) -> list[str]:
    """The test file that mirrors a module, and those that import it; else those of its users."""
    found = _tests_beside(path, root)
    if not found:
        users = (
            str(place.relative_to(root))
            for package in PACKAGES
            for place in (root / package).rglob("*.py")
            if _imports(path).search(place.read_text())
        )
        found = {test for user in users for test in _tests_beside(user, root)}
    return sorted(found)


def _tests_beside(path: str, root: Path) -> set[str]:
    module = Path(path)
    return {
        str(place.relative_to(root))
        for place in (root / "tests" / module.parts[0]).rglob("test_*.py")
        if place.stem == f"test_{module.stem}" or _imports(path).search(place.read_text())
    }


def _imports(path: str) -> re.Pattern[str]:
    parts = ("streaming_moments", *Path(path).with_suffix("").parts)
    dotted = ".".join(parts[1:] if parts[1] == "streaming_moments" else parts)
    return re.compile(rf"^(from|import) {re.escape(dotted)}\b", re.MULTILINE)


@dataclass(frozen=True)
class Tree:
    """A copy of the project that mutants are put into."""

    root: Path

    @classmethod
    def of(cls, project: Path, place: Path) -> "Tree":
        """Copy what the tests need."""
        for name in COPIED:
            source = project / name
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, place / name, ignore=ignore)
            elif source.exists():
                shutil.copy(source, place / name)
        return cls(place)

    def passes(self, tests: list[str], seconds: float) -> bool:
        """Whether the tests hold; what takes longer does not."""
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *tests]
        try:
            ran = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return False
        if ran.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError(ran.stdout.decode(errors="replace"))
        return ran.returncode == 0

    def survives(self, mutant: Mutant, tests: list[str], seconds: float) -> bool:
        """Whether no test notices the mutant."""
        place = self.root / mutant.path
        original = place.read_text()
        place.write_text(mutant.source)
        try:
            return self.passes(tests, seconds)
        finally:
            place.write_text(original)

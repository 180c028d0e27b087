"""Which modules of the project import which, also late, and which tests import a module."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation import PACKAGES

ROOT = "streaming_moments"


def module_of(path: str) -> str:
    """The name that a file of the project is imported by.

    >>> module_of("storage/inbox/__init__.py"), module_of("streaming_moments/errors.py")
    ('streaming_moments.storage.inbox', 'streaming_moments.errors')
    """
    parts = Path(path).with_suffix("").parts
    parts = parts if parts[0] == ROOT else (ROOT, *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class Imports:
    """Names of modules that each file imports when it runs; names in strings are late imports."""

    root: Path
    modules: dict[str, ast.Module]

    @classmethod
    def of(cls, root: Path) -> "Imports":
        """Read the sources of a project."""
        paths = [
            path
            for package in PACKAGES
            for path in (root / package).rglob("*.py")
            if not any(part.is_symlink() for part in (path, *path.parents) if part != root)
        ]
        named = {module_of(str(path.relative_to(root))): path for path in paths}
        return cls(root, {name: ast.parse(path.read_text()) for name, path in named.items()})

    def dependents(self, targets: Iterable[str]) -> set[str]:
        """Modules that import one of the targets, or import one that does; the targets too."""
        users: dict[str, set[str]] = {}
        for name, tree in self.modules.items():
            for used in self.imported(tree):
                users.setdefault(used, set()).add(name)
        found, left = set(targets), list(targets)
        while left:
            new = users.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    def imported(self, tree: ast.AST) -> set[str]:
        """Modules of the project that a source imports; a name is looked for where it is from."""
        return {name for name in self._named(tree) if name in self.modules}

    def _named(self, tree: ast.AST) -> Iterator[str]:
        for node in _that_run(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
                for alias in node.names:
                    yield f"{node.module}.{alias.name}"
                    yield from self._sources(node.module, alias.name)

    def _sources(self, package: str, name: str) -> Iterator[str]:
        """Modules that a package exports a name of."""
        for node in ast.walk(self.modules.get(package, ast.Module([], []))):
            if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
                yield node.module or ""


def _that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)


def tests_of(path: str, root: Path, imports: Imports) -> list[str]:
    """Test files that mirror a file or its folder, or import it; else those of its users.

    The campaigns of `tests/faults` take minutes, and are left to who names them.
    """
    module = module_of(path)
    found = _tests_beside(path, [module], root, imports)
    if not found:
        users = [
            name for name in imports.modules if module in imports.imported(imports.modules[name])
        ]
        found = _tests_beside(path, users, root, imports)
    return sorted(found)


def _tests_beside(path: str, modules: Iterable[str], root: Path, imports: Imports) -> set[str]:
    place, wanted = Path(path), set(modules)
    mirror = root / "tests" / place.parent
    return {
        str(test.relative_to(root))
        for test in (root / "tests").rglob("test_*.py")
        if root / "tests" / "faults" not in test.parents
        and (
            mirror in test.parents
            or test.stem == f"test_{place.stem}"
            or wanted & imports.imported(ast.parse(test.read_text()))
        )
    }

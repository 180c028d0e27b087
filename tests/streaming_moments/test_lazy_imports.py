"""Lazy imports: loaded at their first use, from any thread, and listed before."""

from __future__ import annotations

import ast
import py_compile
import pydoc
import re
import rlcompleter
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

import streaming_moments.sklearn
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.registry import MODELS

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("streaming_moments", "storage", "pipelines")


def lazy_packages() -> Iterator[str]:
    """Names of all packages that attach exports."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("__init__.py")):
            inner = path.parent.relative_to(ROOT).parts
            parts = inner if folder == "streaming_moments" else ("streaming_moments", *inner)
            if "\nattach(" in path.read_text():
                yield ".".join(parts)


def test_a_member_is_loaded_when_its_package_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_loaded_slowly"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import threading\n"
        "threading.package_began.set()\n"
        # what a member needs that does not wait for its package
        "threading.member_began.wait(0.5)\n"
        "complete = True\n"
    )
    (package / "member.py").write_text(
        "import sys, threading\n"
        "threading.member_began.set()\n"
        "found = hasattr(sys.modules['package_loaded_slowly'], 'complete')\n"
    )
    package_began = threading.Event()
    monkeypatch.setattr(threading, "package_began", package_began, raising=False)
    monkeypatch.setattr(threading, "member_began", threading.Event(), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(getattr, LazyModule("package_loaded_slowly"), "complete")
        assert package_began.wait(10)
        assert pool.submit(getattr, LazyModule("package_loaded_slowly.member"), "found").result()
        assert whole.result()
    for name in ("package_loaded_slowly.member", "package_loaded_slowly"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("name", [*lazy_packages()])
def test_a_package_exports_what_it_imports_for_type_checkers(name: str) -> None:
    package = import_module(name)
    assert package.__file__
    imports = [
        node
        for node in ast.walk(ast.parse(Path(package.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.col_offset
    ]
    places = {alias.name: node.module for node in imports for alias in node.names}
    assert package.__all__ == sorted(places)
    for export, module in places.items():
        own = getattr(import_module(str(module)), export)
        assert getattr(package, export) is own
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*lazy_packages()])
def test_dir_tab_and_help_list_all_exports(name: str) -> None:
    package = import_module(name)
    exports = set(package.__all__)
    assert exports.isdisjoint(vars(package))
    assert exports <= set(dir(package))
    completed = rlcompleter.Completer({"package": package}).attr_matches("package.")
    assert exports <= {match.removeprefix("package.").split("(")[0] for match in completed}
    text = pydoc.render_doc(package, renderer=pydoc.plaintext)
    assert all(re.search(rf"\b{export}\b", text) for export in exports)


def test_models_their_options_and_estimators_are_imported_from_the_package() -> None:
    names = {one.__name__ for family in MODELS.values() for one in (family, family.Options)}
    assert len(names) > 15
    assert names | set(streaming_moments.sklearn.__all__) <= set(streaming_moments.__all__)
    assert {"CountingOptions", "KindOptions", "PilotOptions"} <= set(streaming_moments.__all__)


def test_all_lazy_packages_are_tested() -> None:
    assert len([*lazy_packages()]) >= 29
    assert {"streaming_moments", "streaming_moments.storage"} < set(lazy_packages())


def a_package(folder: Path, imports: str, needs: str = "{}") -> str:
    """Write a package whose `__init__.py` attaches these imports."""
    name = f"lazy_{folder.name}"
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n\n"
        "from streaming_moments.lazy_imports import attach\n\n"
        f"attach(__name__, needs={needs})\n\nif TYPE_CHECKING:\n{imports}"
    )
    return name


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"lazy_{tmp_path.name}")]:
        del sys.modules[name]


def test_an_export_that_needs_an_absent_package_says_so(made: Path) -> None:
    name = a_package(made, f"    from lazy_{made.name}.part import Part as Part\n")
    (made / name / "part.py").write_text("import a_package_that_is_absent\n")
    with pytest.raises(ModuleNotFoundError, match="Part needs the package a_package_that_is_abs"):
        import_module(name).Part  # noqa: B018


def test_a_package_without_its_source_says_what_to_install(made: Path) -> None:
    name = a_package(made, "    from json import loads as loads\n")
    source = made / name / "__init__.py"
    py_compile.compile(str(source), cfile=str(source.with_suffix(".pyc")))
    source.unlink()
    with pytest.raises(ImportError, match="is installed without .*__init__.py, .*; install"):
        import_module(name).loads  # noqa: B018


def test_exports_whose_package_is_absent_are_not_listed(made: Path) -> None:
    name = a_package(
        made,
        f"    from lazy_{made.name}.folder.part import Part as Part\n"
        f"    from lazy_{made.name}.other import other as other\n",
        "{'folder': 'a_package_that_is_absent', 'other': 'sys'}",
    )
    (made / name / "folder").mkdir()
    (made / name / "folder" / "part.py").write_text("import a_package_that_is_absent\n")
    (made / name / "other.py").write_text("other = 3\n")
    package = import_module(name)
    assert package.__all__ == ["other"]
    assert "Part" not in dir(package)
    assert "other" in pydoc.render_doc(package, renderer=pydoc.plaintext)
    with pytest.raises(ModuleNotFoundError, match="Part needs the package a_package_that_is_abs"):
        package.Part  # noqa: B018

"""Late modules: loaded when they are first asked for, from whatever thread."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streaming_moments.faces import LateModule


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
        whole = pool.submit(getattr, LateModule("package_loaded_slowly"), "complete")
        assert package_began.wait(10)
        assert pool.submit(getattr, LateModule("package_loaded_slowly.member"), "found").result()
        assert whole.result()
    for name in ("package_loaded_slowly.member", "package_loaded_slowly"):
        monkeypatch.delitem(sys.modules, name)

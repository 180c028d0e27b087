"""What packages of 0.2 exported is found for a release, with a warning."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from streaming_moments.deprecation import Deprecated

ROOT = Path(__file__).parent.parent.parent
PACKAGES = [
    *("storage.files", "storage.inbox", "storage.log", "storage.operations", "storage.segments"),
    *("storage.store", "pipelines.cluster", "pipelines.reports"),
]


def exported(package):
    """Module and name of each."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    [call] = [
        node.value for node in tree.body if isinstance(getattr(node, "value", None), ast.Call)
    ]
    return [(one.arg, name) for one in call.keywords for name in one.value.value.split()]


@pytest.mark.parametrize("package", PACKAGES)
def test_old_exports_warn_and_are_the_same(package):
    whole = import_module(f"streaming_moments.{package}")
    assert len(exported(package)) >= 5
    for module, name in exported(package):
        place = f"{whole.__name__}.{module}"
        with pytest.warns(Deprecated, match=f"{whole.__name__}.{name} is .* use {place}.{name}$"):
            assert getattr(whole, name) is getattr(import_module(place), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        whole.nothing  # noqa: B018

"""Folders export the names that they list, and no other."""

from types import ModuleType

import pytest

from streaming_moments.storage import inbox, operations


@pytest.mark.parametrize("folder", [inbox, operations])
def test_all_names_are_there(folder):
    found = [getattr(folder, name) for name in folder.__all__]
    assert not any(isinstance(one, ModuleType) for one in found)
    assert len({*folder.__all__}) == len(found) >= 10
    with pytest.raises(AttributeError):
        folder.nothing  # noqa: B018

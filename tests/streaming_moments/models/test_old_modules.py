"""The modules that 0.2 had elsewhere are found by pickles, and its exports for a release."""

import pickle
import subprocess
import sys

import pytest

from streaming_moments.deprecation import Deprecated
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.chains.transitions import Operators
from streaming_moments.models.three_view.multi_view import MultiViewMixture

OLD = "streaming_moments.models.views"


@pytest.mark.parametrize(
    ("module", "own"),
    [
        ("hidden_markov", HiddenMarkovModel),
        ("transitions", Operators),
        ("multi_view", MultiViewMixture),
    ],
)
def test_a_pickle_that_names_the_old_module_is_read_by_a_new_process(module, own):
    written = pickle.dumps(own, protocol=0).decode()
    assert own.__module__ in written
    old = written.replace(own.__module__, f"{OLD}.{module}").encode()
    # in a process of its own, where nothing was imported before
    told = f"import pickle; print(pickle.loads({old!r}).__module__)"
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", told]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout.strip() == own.__module__


@pytest.mark.parametrize("own", [HiddenMarkovModel, MultiViewMixture])
def test_the_old_exports_warn_and_are_the_same_classes(own):
    module = __import__(OLD, fromlist=["__doc__"])
    new = rf"{own.__module__}\.{own.__name__}"
    with pytest.warns(Deprecated, match=rf"^{OLD}\.{own.__name__} is deprecated .* use {new}$"):
        assert getattr(module, own.__name__) is own


def test_the_old_package_has_no_other_names():
    with pytest.raises(ImportError, match="cannot import name 'Operators'"):
        from streaming_moments.models.views import Operators as _  # noqa: F401

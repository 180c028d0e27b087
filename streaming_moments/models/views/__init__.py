"""Old names of modules in version 0.2, for pickled estimators; now `chains` and `three_view`."""

import sys
from typing import Any

from streaming_moments.deprecation import warn_deprecated
from streaming_moments.models.chains import hidden_markov, transitions
from streaming_moments.models.three_view import multi_view

_EXPORTS = {"HiddenMarkovModel": hidden_markov, "MultiViewMixture": multi_view}

# keep the old names as long as estimators that version 0.2 pickled are supported
for _module in (hidden_markov, transitions, multi_view):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    own = _EXPORTS[name]
    warn_deprecated(f"{__name__}.{name}", "0.3.0", "0.4.0", f"{own.__name__}.{name}")
    return getattr(own, name)

"""Comparisons of numbers of topics in the reports of earlier nightly runs."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from streaming_moments.models.halves import HeldOut
from streaming_moments.pipelines.jobs.candidates import Candidate, Selection
from streaming_moments.pipelines.nightly.history import MOST_NIGHTS
from streaming_moments.storage.files.folders import Folder

_TRIED: TypeAdapter[tuple[Candidate, ...]] = TypeAdapter(tuple[Candidate, ...])
_SINGLE: TypeAdapter[HeldOut | None] = TypeAdapter(HeldOut | None)


def latest_comparison(folder: Folder, store: str) -> tuple[int, Selection] | None:
    """Return the version of the store that was last used to compare models, and the comparison.

    Looks only at the last 30 runs. Arguments as in `read_history`.
    """
    written = [name for name in folder.names("") if name.startswith("night-")]
    for name in [one for one in written if one.endswith(".json")][: -MOST_NIGHTS - 1 : -1]:
        data = folder.find(name)
        try:
            content = {} if data is None else json.loads(data)
            tried = _TRIED.validate_python(content.get("candidates", ()))
            single = _SINGLE.validate_python(content.get("single"))
            mine = content.get("store") == store and content.get("version") is not None
        except (ValueError, AttributeError):
            continue
        if mine and len(tried) > 1:
            topical = any(one.npmi is not None for one in tried)
            held, number = ("pairs", "topics") if topical else ("triples", "states")
            return content["version"], Selection(tried, 0.0, held, number, single=single)
    return None

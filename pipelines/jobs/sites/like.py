"""Create a store like another, on its foundation."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.store.store import MomentStore

# Options of `create` that say how shards are read, by the field of their format.
_FORM = {
    "format": "kind",
    "text_column": "text_column",
    "ids_column": "ids_column",
    "counts_column": "counts_column",
}
_DATES = frozenset({"date_column", "date_pattern"})


def created_like(
    url: str,
    like: str,
    given: Set[str],
    counting: CountingOptions,
    storage_options: Mapping[str, Any] | None = None,
    has_shards: bool = False,
) -> MomentStore:
    """Create a store on the foundation of another store, or of its file.

    `given` are the names of the options that the user gave; `has_shards` says whether there are
    shards, too. Raises InvalidInput, with their names, for all that the foundation decides.
    """
    decided = sorted(given - _FORM.keys() - _DATES)
    if decided or has_shards:
        flags = [f"--{name.replace('_', '-')}" for name in decided]
        raise InvalidInput(
            f"--like takes the words, the basis and the rules of {like}; remove "
            f"{' and '.join([*flags, *['SHARDS'] * has_shards])}, which would differ"
        )
    shared = SharedFoundation.at(like, storage_options)
    form = {_FORM[name]: getattr(counting, name) for name in given & _FORM.keys()}
    _require_same_content(shared, form, like)
    dates = counting.dates if given & _DATES else None
    return create_like(url, shared.read_as(form, dates), f"create like {like}", storage_options)


def _require_same_content(shared: SharedFoundation, form: Mapping[str, Any], like: str) -> None:
    """Refuse ids for a store of texts, and the reverse."""
    before = shared.lineage.form.get("ids_column")
    after = form.get("ids_column", before)
    if (before is None) != (after is None):
        holds = "texts" if before is None else "token ids"
        raise InvalidInput(f"{like} counts {holds}, which --ids-column would change; remove it")

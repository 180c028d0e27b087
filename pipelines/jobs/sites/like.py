"""Create a store that counts like another store, on the same foundation."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions, option_of
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.store.store import MomentStore

# The options of `create` that say how shards are read, each with its field of the shard format.
_FORM = {
    "format": "kind",
    "text_column": "text_column",
    "ids_column": "ids_column",
    "counts_column": "counts_column",
}
_DATES = frozenset({"date_column", "date_pattern"})
_KINDS = (KindOptions, CountingOptions, PilotOptions)


def created_like(
    url: str,
    like: str,
    given: Set[str],
    counting: CountingOptions,
    storage_options: Mapping[str, Any] | None = None,
    has_shards: bool = False,
) -> MomentStore:
    """Create a store on the foundation of `like`, another store or a file with its foundation.

    `given` are the names of the options that the user gave; `has_shards` says whether the user also
    gave shards. Raises InvalidInput if some of these are options that the foundation decides, or
    if there are shards; the message names them.
    """
    decided = given - _FORM.keys() - _DATES
    if decided or has_shards:
        every = [own for kind in _KINDS for own in fields(kind) if own.name in decided]
        named = [f"{{create.{option_of(own)}}}" for own in every] + ["SHARDS"] * has_shards
        raise InvalidInput(
            f"the new store takes its words, basis and rules from {like}",
            f"remove {' and '.join(named)}, which would set them differently",
        )
    shared = SharedFoundation.at(like, storage_options)
    form = {_FORM[name]: getattr(counting, name) for name in given & _FORM.keys()}
    _require_same_content(shared, form, like)
    dates = counting.dates if given & _DATES else None
    return create_like(url, shared.read_as(form, dates), f"create like {like}", storage_options)


def _require_same_content(shared: SharedFoundation, form: Mapping[str, Any], like: str) -> None:
    """Refuse token ids if the other store counts texts, and texts if it counts token ids."""
    before = shared.lineage.form.get("ids_column")
    after = form.get("ids_column", before)
    if (before is None) != (after is None):
        holds = "texts" if before is None else "token ids"
        raise InvalidInput(f"{like} counts {holds}", "remove {create.ids_column}")

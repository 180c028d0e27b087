"""Shares of topics by origin, computed from counts of a merged store, without documents."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.operations.shares_over_time import shares_in
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class OriginShares:
    """Shares of topics in the documents of an origin.

    origin : its name; empty for the documents that the store counted itself
    tokens : number of tokens of the model's words
    shares, bars : (k,) shares of the tokens and their standard errors, as in `PeriodShares`
    """

    origin: str
    tokens: int
    shares: tuple[float, ...]
    bars: tuple[float, ...]


def shares_by_origin(store: MomentStore, model: TopicModel) -> tuple[OriginShares, ...]:
    """Return shares of topics in the documents of each origin, first in those of the store itself.

    The vocabulary of `store` begins with the words of the model. Origins without a token are
    omitted. Raises InvalidInput for a store without origins.

    Examples
    --------
    >>> from streaming_moments.storage.merging.pulling import pull
    >>> from streaming_moments.testing.small_store import append, create, model_of
    >>> hub = pull(append(create(), {"a": 1}), append(create(), {"b": 2}), "rome").store
    >>> [(one.origin, one.tokens) for one in shares_by_origin(hub, model_of(1))]
    [('', 16), ('rome', 14)]
    """
    _require_origins(store)
    parts: dict[str, list[SegmentReference]] = {}
    for part in store.commit.segments:
        parts.setdefault((part.origin or "").partition("/")[0], []).append(part)
    found = ((name, shares_in(store, model, own)) for name, own in sorted(parts.items()))
    return tuple(OriginShares(name, *one) for name, one in found if one is not None)


def only_of(store: MomentStore, origin: str) -> MomentStore:
    """Return a store for reading that has only the documents of one origin.

    `origin` "" means the documents that the store counted itself.

    Raises InvalidInput for a store without origins, or without this one.

    Examples
    --------
    >>> from streaming_moments.storage.merging.pulling import pull
    >>> from streaming_moments.testing.small_store import append, create
    >>> hub = pull(append(create(), {"a": 1}), append(create(), {"b": 2}), "rome").store
    >>> [record.url for record in only_of(hub, "rome").ledger()]
    ['origin://rome/b']
    """
    _require_origins(store)
    if origin and origin not in store.commit.origins:
        raise InvalidInput(
            f"version {store.version} of {store.url} has no origin {origin!r}; it has "
            f"{', '.join(store.commit.origins)}"
        )
    parts = store.commit.segments
    own = tuple(part for part in parts if (part.origin or "").partition("/")[0] == origin)
    return replace(store, commit=replace(store.commit, segments=own, sums=()))


def _require_origins(store: MomentStore) -> None:
    if not store.commit.origins:
        raise InvalidInput(
            f"version {store.version} of {store.url} has no origins",
            "add stores of other sites by {merge}",
        )

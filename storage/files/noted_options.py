"""Noted options: whether a command used its fsspec options, which local paths do not need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fsspec.utils import get_protocol

from streaming_moments.storage.files.backends import is_local


class NotedOptions(dict[str, Any]):
    """Options of fsspec, with a record of whether this process gave them to any file system.

    The paths of a command do not show this, because a store on a local disk may name shards on
    other storage.
    """

    used = False


def without_effect(
    where: str, options: Mapping[str, Any] | None, places: Iterable[str | None]
) -> str:
    """Return a message that options have no effect; empty if one of `places` is a URL, not a path.

    Examples
    --------
    >>> without_effect("[storage_options]", {"key": "a secret"}, ["store", "s3://bucket/a"])
    ''
    >>> without_effect("[storage_options]", {"key": "a secret"}, ["store", None])
    '[storage_options] key has no effect, because all paths are local; remove it, or write URLs \
such as s3://BUCKET'
    """
    local = (is_local(get_protocol(place)) for place in places if place is not None)
    if not options or not all(local):
        return ""
    return (
        f"{where} {', '.join(options)} has no effect, because all paths are local; remove it, or "
        "write URLs such as s3://BUCKET"
    )

"""Copied inboxes: distinguish a copy of a sealed shard from equal documents of another inbox.

Batches have random names. A copy of an inbox keeps these names, even if it was made before the
batches were sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.seals import Seal, place_of_shard, seal_file, seal_of_shard


def are_of_other_batches(
    shards: tuple[str, str], storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Whether two sealed shards certainly hold documents of different batches.

    False if a seal is missing or cannot be read, because then one shard may be a copy of the other.
    """
    one, other = (_seal_bytes(shard, storage_options) for shard in shards)
    if one is None or other is None or one == other:
        return False
    try:
        names = [
            {batch.name for batch in Seal.unsealed(data, shard).batches}
            for shard, data in zip(shards, (one, other), strict=True)
        ]
    except StoreError:
        # a damaged seal names no batches
        return False
    return names[0].isdisjoint(names[1])


def _seal_bytes(shard: str, storage_options: Mapping[str, Any] | None) -> bytes | None:
    place = place_of_shard(shard)
    if place is None:
        return None
    inbox, path = place
    try:
        return Folder.at(inbox, storage_options).find(seal_file(seal_of_shard(path)))
    except StoreError:
        # the place of a shard that has moved may no longer be readable
        return None

"""Numba kernels that find token ids in a vocabulary, without the interpreter lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

# 2^64 divided by the golden ratio. Ids are usually consecutive; multiplied by this number, they are
# spread over the hash table.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NONE = np.int64(-1)  # marks a free slot; ids are at least 0


@kernel()
def index_ids(ids: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Put ids and their places in `ids` into a (2^b, 2) hash table, which contains `NONE`.

    Open addressing: each id gets its own slot, or the next free one. There must be more slots than
    ids.
    """
    last = np.uint64(slots.shape[0] - 1)
    for place in range(ids.size):
        slot = _slot_of(ids[place], last)
        while slots[slot, 0] != NONE:
            slot = (slot + np.uint64(1)) & last
        slots[slot, 0] = ids[place]
        slots[slot, 1] = place


@kernel()
def places_of(ids: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Look up ids, which must be at least 0, in a hash table that `index_ids` filled.

    Returns the place of each id in the ids that `index_ids` was given; -1 if it was not among them.
    """
    last = np.uint64(slots.shape[0] - 1)
    places = np.empty(ids.size, dtype=np.int64)
    for entry in range(ids.size):
        slot = _slot_of(ids[entry], last)
        while slots[slot, 0] != ids[entry] and slots[slot, 0] != NONE:
            slot = (slot + np.uint64(1)) & last
        # the search for an unknown id ends at a free slot, which holds -1 in both columns
        places[entry] = slots[slot, 1]
    return places


@kernel()
def _slot_of(token_id: np.int64, last: np.uint64) -> np.uint64:
    return ((np.uint64(token_id) * _SPREAD) >> np.uint64(32)) & last

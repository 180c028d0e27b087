"""Memory that sums hold and take, told by a process of its own.

CPython 3.11 may crash where `tracemalloc` stops while threads come and go, as those of Dask do.
"""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.sums import (
    GroupSums,
    Opening,
    ProcessSums,
    SumsAstray,
)
from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

# how sums are given up, to which a task may still be adding
WAYS = {
    "discarded": lambda held, opening, sums: held.discard(opening.owner, sums.nonce),
    "frozen": lambda held, opening, _: held.freeze(opening.owner, opening.group, opening.epoch + 1),
    "released": lambda held, opening, _: held.release(opening.owner),
    "of a dead client": lambda held, *_: held.keep_only(set()),
    "a later group": lambda held, opening, sums: held._entered(
        replace(opening, group=2), sums.layout, 5
    ),
    "the same task twice": lambda held, opening, sums: held._entered(opening, sums.layout, 4),
}


def given_up(way, store, opening, prepared):
    """Bytes held before, the most while sums are given up, and whether adding is refused then."""
    held = ProcessSums()
    held.setup(SimpleNamespace(handlers={}))
    tracemalloc.start()
    sums = held._entered(opening, store.layout, 4)
    sums.add([prepared], 0)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    WAYS[way](held, opening, sums)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    try:
        sums.add([prepared], 0)
    except SumsAstray:
        return before, peak, True
    return before, peak, False


def taken(change, prepared):
    """The most bytes that a change of sums takes."""
    tracemalloc.start()
    change([prepared], 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def tell(end, url, shards):
    """Send what the sums of a store take for its shards to an end of a pipe."""
    store = MomentStore.open(url)
    opening = Opening("client/job", 1, 0, range(store.row_blocks))
    context = ReadingContext.of(store, LIMITS, None)
    [prepared, *_] = [one for one, _ in context.prepared(list_shards([shards])[0])]
    sums = GroupSums(store.layout, opening, 0)
    peaks = [(taken(sums.add, prepared), taken(sums.subtract, prepared)) for _ in range(5)]
    left = [block.rows(slice(None)) for block in sums.blocks.values()]
    ways = {way: given_up(way, store, opening, prepared) for way in WAYS}
    told = {
        "state": store.layout.state_bytes,
        "block": store.layout.block_bytes,
        "held": min(before for before, _, _ in ways.values()),
        "given up": {way: (peak, astray) for way, (_, peak, astray) in ways.items()},
        "nothing left": not any(array.any() for block in left for array in block.values()),
        "adding": min(adding for adding, _ in peaks),
        "taking": min(taking for _, taking in peaks),
    }
    end.send(told)

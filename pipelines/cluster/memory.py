"""Memory that a worker needs at most, computed before the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streaming_moments.errors import BoundExceeded
from streaming_moments.printing.remedies import Remedy, remedy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.layout import SegmentLayout

MEBIBYTE = 1 << 20
# Resident size of a worker process that holds almost no arrays: measured 415 MiB after an update on
# one thread with compiled kernels. Read tasks need less memory than planned: with long texts and a
# budget of 572 MiB, such a process held 542 MiB, or 467 MiB if the kernels were compiled before.
PROCESS_BYTES = 416 * MEBIBYTE
# Memory of a read task, as a multiple of the text of a batch. The task holds the text, its tokens
# and their sort keys: measured 9.
READ_FACTOR = 12
BATCH_BYTES = 8 * MEBIBYTE
# Memory of a page of Parquet, as a multiple of its bytes. The page is held as stored, decompressed
# and decoded: measured 2.7.
DECODE_FACTOR = 3
_LEAST_ROW_GROUP = 4 * MEBIBYTE
_MOST_ROW_GROUP = 256 * MEBIBYTE
LIMITS = ReadLimits(document_bytes=BATCH_BYTES)
# Factor for memory that allocators do not return: measured up to 3% of the arrays.
SLACK = 1.1
_LEAST_LUMP = 4 * MEBIBYTE
# Most bytes of a lump, that is, of the batches that are joined and added at once. This is the size
# of about 32,768 documents of 100 tokens.
_MOST_LUMP = 32 * MEBIBYTE
_BATCH_COUNTS = 32 * MEBIBYTE  # bytes reserved for the counts of one batch of text
# Row blocks that are read together by the same requests take at most this many bytes.
AT_ONCE_BYTES = 32 * MEBIBYTE
# Bytes of memory that a pilot needs for each byte of its documents.
PILOT_FACTOR = 16
_NEXT_UNIT = 1023.5  # a larger number is printed in the next unit, such as 1 GiB for 1024 MiB
_BEYOND_MACHINES = 1000 << 40
_NOTHING: Mapping[str, int] = MappingProxyType({})
PIECES = "pieces of sequences"
_MEMORY = remedy("raise {option.memory}")
_MORE_PIECES = remedy("raise {option.memory}, or count longer pieces in a store of their own")
_SMALLER_READS = remedy(
    "raise {option.memory}, or lower {option.max_document_bytes} or {option.max_row_group_bytes}"
)


@dataclass(frozen=True)
class Budget:
    """Most memory that a worker needs in addition to its process.

    `items` maps each purpose to the bytes that it needs. `job` and `remedy` are the beginning and
    the end of the message if the memory does not suffice.
    """

    job: str
    items: Mapping[str, int]
    remedy: Remedy = _MEMORY

    @property
    def nbytes(self) -> int:
        """Bytes of all items and of the process."""
        return PROCESS_BYTES + sum(self.items.values())

    def require(self, memory: int) -> None:
        """Raise BoundExceeded if a worker has less memory (bytes); the message names the items.

        Examples
        --------
        >>> Budget("a sum", {"counts": 100 * MEBIBYTE}).require(512 * MEBIBYTE)
        Traceback (most recent call last):
            ...
        streaming_moments.errors.BoundExceeded: a sum needs 516 MiB on each worker (416 MiB for \
the process, 100 MiB for counts) but the budget is 512 MiB; raise --memory
        """
        if self.nbytes >= _BEYOND_MACHINES:
            raise BoundExceeded(f"{self.job} needs more memory than any machine has", self.remedy)
        if self.nbytes > memory:
            items = {"the process": PROCESS_BYTES, **self.items}
            told = (f"{mebibytes(size)} for {name}" for name, size in items.items() if size)
            raise BoundExceeded(
                f"{self.job} needs {mebibytes(self.nbytes)} on each worker ({', '.join(told)}) but "
                f"the budget is {mebibytes(memory)}",
                self.remedy,
            )


def largest(memory: int, *budgets: Budget) -> int:
    """Return the bytes of the largest step of a job, whose steps run one after another."""
    most = max(budgets, key=lambda budget: budget.nbytes)
    most.require(memory)
    return most.nbytes


@dataclass(frozen=True)
class UpdatePlan:
    """Bounds of an update on one worker.

    lump_bytes : bytes of prepared batches that a thread adds at a time
    batch_bytes : bytes of text that a task reads at a time
    reads_in_flight : tasks of one worker that run or wait for a thread
    peak_bytes : largest memory of a worker process
    row_group_bytes : largest row group, or page of a larger row group, that a task decodes
    passes : how often the shards of a group are read: once if a worker holds the sums of all row
        blocks, otherwise once for each part of the row blocks
    group_shards : a commit takes no further shards once it has this many
    """

    lump_bytes: int
    batch_bytes: int
    reads_in_flight: int
    peak_bytes: int
    row_group_bytes: int = _MOST_ROW_GROUP
    passes: int = 1
    group_shards: int = 1_000_000

    def blocks(self, row_blocks: int) -> list[range]:
        """Return the row blocks of each pass.

        Examples
        --------
        >>> UpdatePlan(1, 1, 1, peak_bytes=0, passes=3).blocks(8)
        [range(0, 3), range(3, 6), range(6, 8)]
        """
        each = -(-row_blocks // self.passes)
        return [range(i, min(i + each, row_blocks)) for i in range(0, row_blocks, each)]

    def in_passes(self, layout: SegmentLayout) -> Remedy:
        """Return a line about the cost of several passes."""
        return remedy(
            "a worker cannot hold the sums of all row blocks ({size}), so the shards are read "
            "{passes} times, each time for some of the blocks. A larger {option.memory}, or fewer "
            "threads for each worker, avoids that",
            size=mebibytes(layout.state_bytes),
            passes=self.passes,
        )


@dataclass(frozen=True)
class ReadingPlan:
    """Bounds on one worker of a job that only reads shards.

    batch_bytes : bytes of text that a task reads at a time
    in_flight : most read tasks of one worker at a time
    row_group_bytes : largest row group, or page of a larger row group, that a task decodes
    peak_bytes : largest memory of a worker process
    """

    batch_bytes: int
    in_flight: int
    row_group_bytes: int
    peak_bytes: int


def plan_reading(
    threads: int,
    memory: int,
    limits: ReadLimits = LIMITS,
    job: str = "reading",
    held: Mapping[str, int] = _NOTHING,
    beside: Mapping[str, int] = _NOTHING,
) -> ReadingPlan:
    """Divide the memory of a worker for a job that reads one shard in each task.

    Raises BoundExceeded if one task does not fit into the budget; the message names the parts.

    limits : limits of documents and row groups. If row groups have no limit, they may use half of
        the memory that the other parts leave free
    held : bytes of the arrays that the worker holds for all tasks, by purpose
    beside : bytes of the arrays that a task holds in addition to its input, by purpose

    Examples
    --------
    >>> plan_reading(threads=2, memory=1024 * MEBIBYTE).in_flight
    2
    """
    held, beside = ({n: int(SLACK * size) for n, size in one.items()} for one in (held, beside))
    made, text = sum(beside.values()), reading_bytes(limits.document_bytes)
    free = memory - PROCESS_BYTES - sum(held.values())
    decoded = limits.row_group_bytes or row_group_room(free // threads - text - made)
    reading = text + DECODE_FACTOR * decoded
    Budget(job, {**held, **beside, "the input of the tasks": reading}, _SMALLER_READS).require(
        memory
    )
    in_flight = min(threads, free // (reading + made))
    peak = memory - free + in_flight * (reading + made)
    return ReadingPlan(BATCH_BYTES, in_flight, decoded, peak)


def plan_update(
    layout: SegmentLayout,
    threads: int,
    memory: int,
    limits: ReadLimits = LIMITS,
    joining: int = 0,
) -> UpdatePlan:
    """Divide the memory of a worker for an update.

    Raises BoundExceeded if the smallest plan does not fit into the budget; the message names the
    parts.

    limits : limits of documents and row groups. If row groups have no limit, they may use half of
        the memory that the other parts leave free
    joining : bytes that a commit needs to join pieces of sequences, after the tasks have ended

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> plan_update(layout, threads=2, memory=1024 * MEBIBYTE).passes
    1
    """
    text = reading_bytes(limits.document_bytes)
    # While a row block is added up over the workers and written, its sum and two copies of it are
    # in memory. Meanwhile other threads add up pieces of at most half a block, each in three
    # arrays: the sum, the received rows and the sent rows.
    adding = int(SLACK * (3 + 1.5 / threads) * layout.block_bytes)
    # plan for the sums of one group: a worker never holds those of two groups, even while abandoned
    # tasks still run
    whole, block = int(SLACK * layout.state_bytes), int(SLACK * layout.block_bytes)

    def task(lump: int, decoded: int) -> int:
        # A task holds the batches of a lump, the joined lump, and one more batch. Some kinds sum a
        # lump over all row blocks at once (`joined_bytes`). Subtraction needs the same memory.
        lumps = int(SLACK * (2 * lump + _BATCH_COUNTS + layout.foundation.joined_bytes))
        return max(text + DECODE_FACTOR * decoded + lumps, adding)

    least = task(_LEAST_LUMP, limits.row_group_bytes or _LEAST_ROW_GROUP)
    tasks, sums_of_a_block = f"{threads} threads", {"the sums of a row block": block}
    Budget(
        "an update",
        {tasks: threads * least, **sums_of_a_block},
        remedy(
            "raise {option.memory}, use fewer threads for each worker, or lower "
            "{option.max_document_bytes} or {option.max_row_group_bytes}"
        ),
    ).require(memory)
    Budget("a commit", {PIECES: joining, **sums_of_a_block}, _MORE_PIECES).require(memory)
    free = memory - PROCESS_BYTES - max(threads * least, joining)
    held = layout.row_blocks if free >= whole else min(layout.row_blocks, free // block)
    passes = -(-layout.row_blocks // held)
    sums = whole if passes == 1 else -(-layout.row_blocks // passes) * block
    # Lumps get only half of the memory that the sums leave free, so that row groups may be larger,
    # too.
    spare = max(0, free - sums) // threads
    lump = min(_MOST_LUMP, _LEAST_LUMP + int(spare / 2 / SLACK / 2))
    left = max(0, (memory - PROCESS_BYTES - sums) // threads - task(lump, 0))
    decoded = limits.row_group_bytes or max(
        _LEAST_ROW_GROUP, min(left // DECODE_FACTOR, _MOST_ROW_GROUP)
    )
    return UpdatePlan(
        lump_bytes=lump,
        batch_bytes=BATCH_BYTES,
        reads_in_flight=2 * threads,
        row_group_bytes=decoded,
        passes=int(passes),
        peak_bytes=PROCESS_BYTES + max(threads * task(lump, decoded), joining) + sums,
    )


def reading_bytes(document_bytes: int) -> int:
    return READ_FACTOR * longest_batch(document_bytes)


def longest_batch(document_bytes: int) -> int:
    return max(BATCH_BYTES, document_bytes)


def pilot_room(memory: int) -> int:
    """Return the bytes of documents that a pilot may hold within a memory budget."""
    return max(1, (memory - PROCESS_BYTES) // PILOT_FACTOR)


def row_group_room(free: int) -> int:
    """Return the largest row group, in bytes, for a task with `free` bytes of memory.

    A decoded row group may use half of that memory.
    """
    return min(max(free // 2 // DECODE_FACTOR, _LEAST_ROW_GROUP), _MOST_ROW_GROUP)


def blocks_in_flight(
    layout: SegmentLayout, threads: int, memory: int, copies: int, joining: int = 0
) -> int:
    """Return how many tasks of one row block a worker of `memory` bytes may run at a time.

    Each task holds `copies` copies of the block, and needs `joining` bytes to join the segments.
    Raises BoundExceeded if one task does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> blocks_in_flight(layout, threads=2, memory=1024 * MEBIBYTE, copies=3)
    2
    """
    items = {f"the block {copies} times": copies * layout.block_bytes, PIECES: joining}
    Budget("a row block", items, _MORE_PIECES if joining else _MEMORY).require(memory)
    return max(1, min(threads, (memory - PROCESS_BYTES) // sum(items.values())))


def blocks_at_once(
    layout: SegmentLayout, copies: int, room: int = AT_ONCE_BYTES
) -> tuple[range, ...]:
    """Divide the row blocks of a store into groups that are read at once, with fewer requests.

    A task holds `copies` copies of the blocks of a group. They take at most `room` bytes, unless a
    single block takes more.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> blocks_at_once(layout, copies=2)
    (range(0, 5), range(5, 8))
    """
    each = max(1, min(AT_ONCE_BYTES, room) // (copies * layout.block_bytes))
    starts = range(0, layout.row_blocks, each)
    return tuple(range(at, min(at + each, layout.row_blocks)) for at in starts)


def mebibytes(nbytes: float) -> str:
    """Format bytes as people read them.

    Examples
    --------
    >>> [mebibytes(number * MEBIBYTE) for number in (3, 1024, 5000, 3_000_000, 1e12)]
    ['3 MiB', '1 GiB', '4.9 GiB', '2.9 TiB', 'more than 1,000 TiB']
    """
    if nbytes >= _BEYOND_MACHINES:
        return "more than 1,000 TiB"
    if not nbytes:
        return "0 MiB"
    number, unit = nbytes / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if number >= _NEXT_UNIT:
            number, unit = number / 1024, larger
    rounded = f"{number:.1f}".removesuffix(".0") if unit in ("GiB", "TiB") else f"{number:.0f}"
    return f"{rounded} {unit}"

"""What a worker holds at most, computed before the run."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.decompositions.evidence import evidence_bytes
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.errors import BoundExceeded
from streaming_moments.models.rows import FEWEST_STRIPS, strip_sums_held
from streaming_moments.models.topic_reading import LANES
from streaming_moments.numerics.packing import packed_size
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.layout import SegmentLayout

MEBIBYTE = 1 << 20
# Resident size of a worker process with everything imported and compiled, measured: 330 MiB.
PROCESS_BYTES = 400 * MEBIBYTE
# A read task holds the text of a batch, its tokens and their sort keys: measured 9 times the text.
READ_FACTOR = 12
BATCH_BYTES = 8 * MEBIBYTE
# A page of Parquet is held as stored, decompressed and decoded: measured 2.7 times its bytes.
_DECODE_FACTOR = 3
_LEAST_ROW_GROUP = 4 * MEBIBYTE
_MOST_ROW_GROUP = 256 * MEBIBYTE
LIMITS = ReadLimits(document_bytes=BATCH_BYTES)
# What allocators keep back, measured up to 3% of the arrays.
_SLACK = 1.1
# Sums of a strip while they are added up: so far, of a block, and both.
_SUMS_COPIES = 3
_MODEL_ARRAYS = 4  # topics, raw topics, and as documents are read with them; one on its way
_LEAST_LUMP = 4 * MEBIBYTE
_MOST_LUMP = 32 * MEBIBYTE  # some 32,768 documents of 100 tokens
_BATCH_COUNTS = 32 * MEBIBYTE  # of one batch of text


@dataclass(frozen=True)
class UpdatePlan:
    """Bounds of an update on one worker.

    Parameters
    ----------
    lump_bytes : int
        Prepared batches that a thread adds at a time.
    batch_bytes : int
        Bytes of text read at a time.
    reads_in_flight : int
        Tasks of one worker running or waiting for a thread.
    peak_bytes : int
        All a worker process holds at most.
    row_group_bytes : int
        Largest row group, or page of a larger one, that a task decodes.
    passes : int
        How often the shards of a group are read: once where a worker holds the sums of all row
        blocks, else once for each share of them that it holds.
    group_shards : int
        Shards that one commit names at most, or a few more.
    """

    lump_bytes: int
    batch_bytes: int
    reads_in_flight: int
    peak_bytes: int
    row_group_bytes: int = _MOST_ROW_GROUP
    passes: int = 1
    group_shards: int = 1_000_000

    def blocks(self, row_blocks: int) -> list[range]:
        """Row blocks of each pass.

        Examples
        --------
        >>> UpdatePlan(1, 1, 1, peak_bytes=0, passes=3).blocks(8)
        [range(0, 3), range(3, 6), range(6, 8)]
        """
        each = -(-row_blocks // self.passes)
        return [range(i, min(i + each, row_blocks)) for i in range(0, row_blocks, each)]

    def in_passes(self, layout: SegmentLayout) -> str:
        """A line on what it costs that a worker cannot hold the sums of all row blocks."""
        return (
            f"a worker does not hold the sums of all row blocks ({mebibytes(layout.state_bytes)}): "
            f"the shards are read {self.passes} times, once for each share of them; a larger "
            "--memory, or fewer threads a worker, would spare that"
        )


@dataclass(frozen=True)
class RefitPlan:
    """Bounds of a refit on one worker.

    Parameters
    ----------
    keep_blocks : bool
        Whether the row blocks stay in memory between the steps; otherwise they are read again.
    keep_pairs : bool
        Whether the pair counts, as refinement reads them, stay in memory between its rounds;
        otherwise they are made of the row blocks again.
    in_flight : int
        Block tasks of one worker at a time.
    solves_in_flight : int
        Decompositions of one worker at a time, where there are many.
    peak_bytes : int
        All a worker process holds at most.
    whole_core : bool
        Whether it holds the pair counts of all core words; otherwise they stay on all workers.
    """

    keep_blocks: bool
    keep_pairs: bool
    in_flight: int
    solves_in_flight: int
    peak_bytes: int
    whole_core: bool = True


@dataclass(frozen=True)
class ReadingPlan:
    """Bounds of a job that only reads shards, on one worker.

    Parameters
    ----------
    batch_bytes : int
        Text read at a time.
    in_flight : int
        Read tasks of one worker at a time.
    row_group_bytes : int
        Largest row group, or page of a larger one, that a task decodes.
    peak_bytes : int
        All a worker process holds at most.
    """

    batch_bytes: int
    in_flight: int
    row_group_bytes: int
    peak_bytes: int


def plan_reading(threads: int, memory: int, limits: ReadLimits = LIMITS) -> ReadingPlan:
    """Divide a worker's memory for a job that reads shards one task each.

    Parameters
    ----------
    threads : int
        Threads of the worker.
    memory : int
        Budget in bytes.
    limits : ReadLimits
        Of documents and row groups; without one of row groups, what half of the memory left allows.

    Raises
    ------
    BoundExceeded
        The budget cannot hold one task: names the parts.

    Examples
    --------
    >>> plan_reading(threads=2, memory=1024 * MEBIBYTE).in_flight
    2
    """
    text = _reading_bytes(limits.document_bytes)
    decoded = limits.row_group_bytes or _row_group_bytes((memory - PROCESS_BYTES) // threads - text)
    reading = text + _DECODE_FACTOR * decoded
    in_flight = min(threads, (memory - PROCESS_BYTES) // reading)
    if in_flight < 1:
        raise BoundExceeded(
            f"reading needs {mebibytes(PROCESS_BYTES + reading)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(reading)} a task) but the "
            f"budget is {mebibytes(memory)}; raise --memory, or lower --max-document-bytes or "
            "--max-row-group-bytes"
        )
    return ReadingPlan(BATCH_BYTES, in_flight, decoded, PROCESS_BYTES + in_flight * reading)


def plan_polish(
    n_words: int, n_topics: int, threads: int, memory: int, limits: ReadLimits = LIMITS
) -> ReadingPlan:
    """Divide a worker's memory for passes over documents, a task each for some shards.

    Parameters
    ----------
    n_words, n_topics : int
        n, k.
    threads, memory, limits
        As in `plan_reading`.

    Raises
    ------
    BoundExceeded
        The budget cannot hold one task: names the parts.

    Examples
    --------
    >>> plan_polish(10_000, 20, threads=2, memory=1024 * MEBIBYTE).in_flight
    2
    """
    array = 8 * n_words * (n_topics + LANES)  # with the columns that fill the lanes
    longest = 8 * (n_topics + LANES) * min(n_words, limits.document_bytes // 2)
    model = int(_SLACK * _MODEL_ARRAYS * array)
    # sums of a group and of a shard, topics in lanes, what is encoded and what is written; the
    # shares of one document
    adding = int(_SLACK * (5 * array + longest))
    free = memory - PROCESS_BYTES - model
    text = _reading_bytes(limits.document_bytes)
    decoded = limits.row_group_bytes or _row_group_bytes(free // threads - text - adding)
    task = text + _DECODE_FACTOR * decoded + adding
    in_flight = min(threads, free // task)
    if in_flight < 1:
        raise BoundExceeded(
            f"a pass needs {mebibytes(memory - free + task)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(model)} the model, "
            f"{mebibytes(adding)} the sum of {n_topics} topics, {mebibytes(task - adding)} reading)"
            f" but the budget is {mebibytes(memory)}; raise --memory, or lower "
            "--max-document-bytes or --max-row-group-bytes"
        )
    return ReadingPlan(BATCH_BYTES, in_flight, decoded, memory - free + in_flight * task)


def plan_update(
    layout: SegmentLayout, threads: int, memory: int, limits: ReadLimits = LIMITS
) -> UpdatePlan:
    """Divide a worker's memory for an update.

    Parameters
    ----------
    layout : SegmentLayout
        Of the store.
    threads : int
        Threads of the worker.
    memory : int
        Budget in bytes.
    limits : ReadLimits
        Of documents and row groups; without one of row groups, what half of the memory left allows.

    Raises
    ------
    BoundExceeded
        The budget cannot hold the least: names the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> plan_update(layout, threads=2, memory=1024 * MEBIBYTE).passes
    1
    """
    text = _reading_bytes(limits.document_bytes)
    # a row block added up over the workers; the same again twice while it is written
    adding = int(_SLACK * 3 * layout.block_bytes)
    whole, block = int(_SLACK * layout.state_bytes), int(_SLACK * layout.block_bytes)

    def task(lump: int, decoded: int) -> int:
        # what waits for its lump to be full, one batch more, and their entries of a block joined
        lumps = int(_SLACK * (2 * lump + _BATCH_COUNTS))
        return max(text + _DECODE_FACTOR * decoded + lumps, adding)

    least = task(_LEAST_LUMP, limits.row_group_bytes or _LEAST_ROW_GROUP)
    if PROCESS_BYTES + threads * least + block > memory:
        raise BoundExceeded(
            f"an update needs {mebibytes(PROCESS_BYTES + threads * least + block)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {threads} threads of {mebibytes(least)}, "
            f"{mebibytes(block)} sums of a row block) but the budget is {mebibytes(memory)}; raise "
            "--memory, or use fewer threads a worker, or lower --max-document-bytes or "
            "--max-row-group-bytes"
        )
    free = memory - PROCESS_BYTES - threads * least
    held = layout.row_blocks if free >= whole else min(layout.row_blocks, free // block)
    passes = -(-layout.row_blocks // held)
    sums = whole if passes == 1 else -(-layout.row_blocks // passes) * block
    # what the sums leave goes to the lumps first, then to larger row groups
    spare = max(0, free - sums) // threads
    lump = min(_MOST_LUMP, _LEAST_LUMP + int(spare / 2 / _SLACK / 2))
    left = max(0, (memory - PROCESS_BYTES - sums) // threads - task(lump, 0))
    decoded = limits.row_group_bytes or max(
        _LEAST_ROW_GROUP, min(left // _DECODE_FACTOR, _MOST_ROW_GROUP)
    )
    return UpdatePlan(
        lump_bytes=lump,
        batch_bytes=BATCH_BYTES,
        reads_in_flight=2 * threads,
        row_group_bytes=decoded,
        passes=int(passes),
        peak_bytes=PROCESS_BYTES + threads * task(lump, decoded) + sums,
    )


def plan_refit(
    layout: SegmentLayout,
    basis: Basis,
    n_topics: int,
    workers: int,
    threads: int,
    memory: int,
    method: str = "joint",
    held: int = 2,
    row_copies: int = 6,
) -> RefitPlan:
    """Divide a worker's memory for a refit.

    Parameters
    ----------
    layout : SegmentLayout
        Of the store.
    basis : Basis
        Q, with n.
    n_topics : int
        k.
    workers, threads : int
        Worker processes, and threads of each.
    memory : int
        Budget of a worker in bytes.
    method : str
        Decomposition.
    held : int
        Row blocks that reading one holds.
    row_copies : int
        (n, k) arrays that the last step holds, as the model says.

    Raises
    ------
    BoundExceeded
        The budget cannot hold the least: names the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> plan_refit(layout, basis, 5, workers=1, threads=2, memory=1024 * MEBIBYTE).keep_blocks
    True
    """
    pairs = packed_size(n_topics)
    decomposition = decomposition_called(method)
    evidence = evidence_bytes(n_topics)
    core_bytes = 8 * basis.core**2
    # P inside the core as integers, gathered and joined, and as M2
    whitening = int(_SLACK * (3 * core_bytes + 24 * basis.core * basis.columns))
    whole_core = PROCESS_BYTES + whitening <= memory
    if not whole_core:
        # its strips of P, gathered and joined, one more than its share; what is multiplied, and the
        # Krylov space where the coordinator is the worker
        share = min(1.0, 1 / workers + 1 / FEWEST_STRIPS)
        several = 24 * basis.core * basis.columns + 64 * basis.core * n_topics
        whitening = int(_SLACK * (2 * share * core_bytes + several))
    sums = tensor_sums_bytes(basis.columns, n_topics)
    part_rows = min(256, -(-basis.n_words // layout.row_blocks))
    row = 8 * (basis.core + basis.packed + 4 * n_topics)
    # the sketch turned by k directions
    turning = 8 * n_topics * (2 * basis.columns**2 + 2 * basis.packed) + part_rows * row
    adding = _SUMS_COPIES * sums + part_rows * (row + 8 * 2 * n_topics**2)
    if decomposition.needs_slices:
        adding = turning + 8 * (basis.core * (pairs + n_topics**2) + 4 * n_topics * pairs)
        adding += part_rows * 8 * (3 * basis.columns**2 + 8 * n_topics**2)
    blocks = held * layout.block_bytes
    # pair counts in half of their bytes at most; all topics, and both sides of the likelihood
    pairs_bytes = 4 * basis.core * -(-basis.n_words // layout.row_blocks)
    refining = pairs_bytes + 8 * n_topics * (basis.n_words + 3 * basis.core)
    slicing = int(_SLACK * (blocks + max(adding, turning, refining)))
    finishing = 8 * row_copies * basis.n_words * n_topics + decomposition.copies * evidence
    gathered = int(_SLACK * (strip_sums_held(layout.row_blocks, sums) + 1) * sums)
    alone = PROCESS_BYTES + max(whitening, finishing + sums)
    least = max(alone, PROCESS_BYTES + gathered + slicing)
    if least > memory:
        raise BoundExceeded(
            f"a refit of {n_topics} topics needs {mebibytes(least)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(whitening)} whitening, "
            f"{mebibytes(slicing)} slices of one row block, {mebibytes(gathered)} what they say, "
            f"{mebibytes(finishing)} finishing) but "
            f"the budget is {mebibytes(memory)}; raise --memory or ask for fewer topics"
        )
    in_flight = max(1, min(threads, (memory - PROCESS_BYTES - gathered) // slicing))
    peak = max(alone, PROCESS_BYTES + gathered + in_flight * slicing)
    solve = (decomposition.copies + 1) * evidence + sums
    solves = max(1, min(threads, (peak - PROCESS_BYTES) // solve))
    kept = -(-layout.row_blocks // workers) * layout.block_bytes
    keep = peak + kept <= memory
    peak += kept if keep else 0
    kept_pairs = int(_SLACK * -(-layout.row_blocks // workers) * pairs_bytes)
    keep_pairs = peak + kept_pairs <= memory
    peak += kept_pairs if keep_pairs else 0
    return RefitPlan(keep, keep_pairs, int(in_flight), int(solves), peak, whole_core)


def _reading_bytes(document_bytes: int) -> int:
    return READ_FACTOR * max(BATCH_BYTES, document_bytes)


def _row_group_bytes(free: int) -> int:
    """Largest row group accepted where a task has so much memory left: it may take half of it."""
    return min(max(free // 2 // _DECODE_FACTOR, _LEAST_ROW_GROUP), _MOST_ROW_GROUP)


def blocks_in_flight(layout: SegmentLayout, threads: int, memory: int, copies: int) -> int:
    """Tasks of one row block that a worker may run at a time, each holding it so many times.

    Raises
    ------
    BoundExceeded
        The budget cannot hold one task.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> blocks_in_flight(layout, threads=2, memory=1024 * MEBIBYTE, copies=3)
    2
    """
    task = copies * layout.block_bytes
    if memory < PROCESS_BYTES + task:
        raise BoundExceeded(
            f"a row block needs {mebibytes(PROCESS_BYTES + task)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(task)} the block {copies} times) "
            f"but the budget is {mebibytes(memory)}; raise --memory"
        )
    return max(1, min(threads, (memory - PROCESS_BYTES) // task))


def mebibytes(nbytes: float) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> mebibytes(3 * MEBIBYTE), mebibytes(5000 * MEBIBYTE)
    ('3 MiB', '4.9 GiB')
    """
    number = nbytes / MEBIBYTE
    return f"{number:.0f} MiB" if number < 1024 else f"{number / 1024:.1f} GiB"

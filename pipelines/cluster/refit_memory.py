"""Memory that a worker needs at most for a refit, computed before the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from streaming_moments.decompositions.evidence import evidence_bytes
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.models.base import FitOptions
from streaming_moments.models.rows import FEWEST_STRIPS, strip_sums_held
from streaming_moments.numerics.packing import packed_size
from streaming_moments.pipelines.cluster.memory import (
    PIECES,
    PROCESS_BYTES,
    SLACK,
    Budget,
    largest,
)
from streaming_moments.printing.remedies import remedy
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.log.layout import SegmentLayout

# A task holds this many sums while it adds up the sums of several row blocks (a strip): the sums so
# far, the sums of the next block, and the new sums.
_SUMS_COPIES = 3
_FEWER = remedy("raise {option.memory}, or ask for fewer topics or states")


@dataclass(frozen=True)
class RefitPlan:
    """Bounds of a refit on one worker.

    keep_blocks : whether row blocks stay in memory between steps; otherwise they are read again
    kept_pairs : number of arrays of pair counts that stay in memory between rounds of refinement:
        first the array of all documents, then the array of each half. In each round, the other
        arrays are computed again from the row blocks
    in_flight : most tasks on row blocks that one worker runs at a time
    solves_in_flight : decompositions that one worker computes at a time, if there are many
    peak_bytes : largest memory of a worker process
    whole_core : whether a worker holds the pair counts of all core words; otherwise each worker
        holds a part of them
    workers : number of workers
    share_bytes : bytes of the rows that each worker holds between steps
    """

    keep_blocks: bool
    kept_pairs: int
    in_flight: int
    solves_in_flight: int
    peak_bytes: int
    whole_core: bool = True
    workers: int = 1
    share_bytes: int = 0

    @property
    def work_bytes(self) -> int:
        """Bytes that a single process would need for the data that all workers hold."""
        return self.peak_bytes - PROCESS_BYTES + (self.workers - 1) * self.share_bytes

    @property
    def keep_pairs(self) -> bool:
        """Whether the pair counts of all documents stay in memory."""
        return self.kept_pairs > 0


def plan_refit(
    layout: SegmentLayout,
    model: Any,
    options: FitOptions,
    workers: int,
    threads: int,
    memory: int,
    held: int = 2,
    joining: int = 0,
) -> RefitPlan:
    """Divide the memory of a worker for a refit.

    Raises BoundExceeded if the smallest plan does not fit into the budget; the message names the
    parts.

    model : a class of `MODELS`
    options : its `Options`
    workers, threads : number of worker processes, and of threads in each
    memory : budget of a worker in bytes
    held : for a store of documents: how many times its size a row block needs while it is read
    joining : for stores of other kinds: bytes to join the segments of a row block while it is read

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(1000, 9, dtype=np.int8), 1000)
    >>> layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 8)
    >>> options = TopicModel.Options(topics=5)
    >>> plan_refit(layout, TopicModel, options, workers=1, threads=2, memory=1 << 30).keep_blocks
    True
    """
    foundation, k = layout.foundation, options.topics
    finishing = model.fit_bytes(foundation, options)
    if foundation.by_length:
        return _of_documents(layout, options, finishing, workers, threads, memory, held)
    if foundation.one_place:
        plan = _of_one_place(layout, finishing, memory)
    else:
        plan = _of_row_blocks(layout, k, finishing, threads, memory, joining)
    return _with_blocks(plan, layout, workers, memory)


def _of_documents(
    layout: SegmentLayout,
    options: Any,
    fitting: int,
    workers: int,
    threads: int,
    memory: int,
    held: int,
) -> RefitPlan:
    """Plan a refit of documents.

    The last step holds `fitting` bytes in addition to its evidence.
    """
    foundation: Any = layout.foundation
    basis, halves, n_topics = foundation.basis, foundation.halves, options.topics
    pairs = packed_size(n_topics)
    decomposition = decomposition_called(options.method)
    evidence = evidence_bytes(n_topics)
    core_bytes = 8 * basis.core**2
    # Whitening holds the pair counts of the core words twice as integers: in the parts that were
    # gathered, and joined. It also holds the second moment M2.
    whitening = int(SLACK * (3 * core_bytes + 24 * basis.core * basis.columns))
    whole_core = PROCESS_BYTES + whitening <= memory
    if not whole_core:
        # A worker holds its strips of the pair counts and one more strip. While it joins them, it
        # holds them twice. It also holds the factors of a product. The Krylov space is included,
        # because the worker may be the coordinator.
        share = min(1.0, 1 / workers + 1 / FEWEST_STRIPS)
        several = 24 * basis.core * basis.columns + 64 * basis.core * n_topics
        whitening = int(SLACK * (2 * share * core_bytes + several))
    sums = tensor_sums_bytes(basis.columns, n_topics)
    part_rows = min(256, -(-basis.n_words // layout.row_blocks))
    row = 8 * (basis.core + basis.packed + 4 * n_topics)
    # bytes of the step that projects the sketch to k directions
    turning = 8 * n_topics * (2 * basis.columns**2 + 2 * basis.packed) + part_rows * row
    adding = _SUMS_COPIES * sums + part_rows * (row + 8 * 2 * n_topics**2)
    if decomposition.needs_slices:
        adding = turning + 8 * (basis.core * (pairs + n_topics**2) + 4 * n_topics * pairs)
        adding += part_rows * 8 * (3 * basis.columns**2 + 8 * n_topics**2)
    # Each pair count has 8 bytes, and is packed into at most 4.
    pairs_bytes = 4 * basis.core * -(-basis.n_words // layout.row_blocks)
    # Refinement holds the pair counts of a row block, all topics, and the two factors of the
    # likelihood. With halves, it also holds the pair counts of one half, and those of the other
    # half, which are the difference.
    refining = (3 if halves else 1) * pairs_bytes + 8 * n_topics * (basis.n_words + 3 * basis.core)
    slicing = int(SLACK * (held * layout.block_bytes + max(adding, turning, refining)))
    finishing = fitting + decomposition.copies * evidence
    gathered = _gathered(layout, sums)
    job = f"a refit of {n_topics:,} topics"
    first = Budget(job, {"whitening": whitening}, _FEWER)
    sliced = {"slices of one row block": slicing, "slices of all rows": gathered}
    last = Budget(job, {"finishing": finishing, "slices of all rows": sums}, _FEWER)
    largest(memory, first, Budget(job, sliced, _FEWER), last)
    in_flight = max(1, min(threads, (memory - PROCESS_BYTES - gathered) // slicing))
    peak = max(first.nbytes, last.nbytes, PROCESS_BYTES + gathered + in_flight * slicing)
    solve = (decomposition.copies + 1) * evidence + sums
    solves = max(1, min(threads, (peak - PROCESS_BYTES) // solve))
    plan = RefitPlan(False, 0, int(in_flight), int(solves), peak, whole_core)
    plan = _with_blocks(plan, layout, workers, memory)
    kept_pairs = int(SLACK * -(-layout.row_blocks // workers) * pairs_bytes)
    pairs_kept = int(min(3 if halves else 1, (memory - plan.peak_bytes) // kept_pairs))
    return _keeping(replace(plan, kept_pairs=pairs_kept), workers, pairs_kept * kept_pairs)


def _of_one_place(layout: SegmentLayout, finishing: int, memory: int) -> RefitPlan:
    """Plan a fit for which one process holds the moments of all rows."""
    # Four arrays of this size are in memory: the files, their sum, the moments of all rows, and the
    # moments of one half of the records.
    items = {
        "the sums": int(SLACK * 4 * layout.state_bytes),
        "tensors of the moments": int(SLACK * finishing),
    }
    fewer = remedy("raise {option.memory}, or give fewer {create.sketch_columns}")
    peak = largest(memory, Budget("a fit of the moments of all rows", items, fewer))
    return RefitPlan(False, 0, 1, 1, peak)


def _of_row_blocks(
    layout: SegmentLayout, k: int, finishing: int, threads: int, memory: int, joining: int
) -> RefitPlan:
    """Plan a refit of k states, in which each step holds a row block and small sums."""
    foundation = layout.foundation
    # The sums hold the contraction of a row with each state.
    sums = 8 * k * max(prod(shape[1:]) for shape in foundation.shapes(RowBlock()).values())
    # Four copies of a block are in memory: the files, their sum, one half, and both as floats.
    block = int(SLACK * (4 * layout.block_bytes + _SUMS_COPIES * sums))
    gathered = {"sums of all rows": _gathered(layout, sums)}
    steps = {"a row block": block, PIECES: joining}, {"finishing": finishing}
    largest(memory, *(Budget(f"a refit of {k:,} states", gathered | one, _FEWER) for one in steps))
    room = memory - PROCESS_BYTES - sum(gathered.values())
    in_flight = max(1, min(threads, room // (block + joining)))
    peak = memory - room + max(in_flight * (block + joining), finishing)
    return RefitPlan(False, 0, int(in_flight), 1, int(peak))


def _gathered(layout: SegmentLayout, sums: int) -> int:
    """Return the bytes that hold the sums of strips until they are added up, and one more sum."""
    return int(SLACK * (strip_sums_held(layout.row_blocks, sums) + 1) * sums)


def _with_blocks(plan: RefitPlan, layout: SegmentLayout, workers: int, memory: int) -> RefitPlan:
    """Return the plan, changed so that workers hold all row blocks in memory if they can."""
    share = -(-layout.row_blocks // workers) * layout.block_bytes
    if plan.peak_bytes + share > memory:
        return plan
    return _keeping(replace(plan, keep_blocks=True), workers, share)


def _keeping(plan: RefitPlan, workers: int, share: int) -> RefitPlan:
    """Return the plan, changed so that each worker holds `share` more bytes between steps."""
    return replace(
        plan,
        peak_bytes=plan.peak_bytes + share,
        workers=workers,
        share_bytes=plan.share_bytes + share,
    )

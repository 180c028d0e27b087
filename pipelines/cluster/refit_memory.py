"""What a worker holds at most in a refit, computed before the run."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from streaming_moments.decompositions.evidence import evidence_bytes
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.errors import BoundExceeded
from streaming_moments.models.base import FitOptions
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.rows import FEWEST_STRIPS, strip_sums_held
from streaming_moments.numerics.packing import packed_size
from streaming_moments.pipelines.cluster.memory import PROCESS_BYTES, SLACK, mebibytes, with_pieces
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.storage.log.layout import SegmentLayout

# Sums of a strip while they are added up: so far, of a block, and both.
_SUMS_COPIES = 3
# Of a third or fourth moment while it is centred and turned, and of covariances.
_TENSOR_COPIES = 8


@dataclass(frozen=True)
class RefitPlan:
    """Bounds of a refit on one worker.

    Parameters
    ----------
    keep_blocks : bool
        Whether the row blocks stay in memory between the steps; otherwise they are read again.
    kept_pairs : int
        How many of the pair counts, as refinement reads them, stay in memory between its rounds:
        of all documents, then of each half; those that do not are made of the row blocks again.
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
    kept_pairs: int
    in_flight: int
    solves_in_flight: int
    peak_bytes: int
    whole_core: bool = True

    @property
    def keep_pairs(self) -> bool:
        """Whether those of all documents stay in memory."""
        return self.kept_pairs > 0


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
    >>> plan_refit(layout, basis, 5, workers=1, threads=2, memory=1 << 30).keep_blocks
    True
    """
    pairs = packed_size(n_topics)
    decomposition = decomposition_called(method)
    evidence = evidence_bytes(n_topics)
    core_bytes = 8 * basis.core**2
    # P inside the core as integers, gathered and joined, and as M2
    whitening = int(SLACK * (3 * core_bytes + 24 * basis.core * basis.columns))
    whole_core = PROCESS_BYTES + whitening <= memory
    if not whole_core:
        # its strips of P, gathered and joined, one more than its share; what is multiplied, and the
        # Krylov space where the coordinator is the worker
        share = min(1.0, 1 / workers + 1 / FEWEST_STRIPS)
        several = 24 * basis.core * basis.columns + 64 * basis.core * n_topics
        whitening = int(SLACK * (2 * share * core_bytes + several))
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
    halves = isinstance(layout.foundation, CountsFoundation) and layout.foundation.halves
    # of the odd half a difference of integers
    refining = (3 if halves else 1) * pairs_bytes + 8 * n_topics * (basis.n_words + 3 * basis.core)
    slicing = int(SLACK * (blocks + max(adding, turning, refining)))
    finishing = 8 * row_copies * basis.n_words * n_topics + decomposition.copies * evidence
    gathered = int(SLACK * (strip_sums_held(layout.row_blocks, sums) + 1) * sums)
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
    kept_pairs = int(SLACK * -(-layout.row_blocks // workers) * pairs_bytes)
    pairs_kept = int(min(3 if halves else 1, (memory - peak) // kept_pairs))
    peak += pairs_kept * kept_pairs
    return RefitPlan(keep, pairs_kept, int(in_flight), int(solves), peak, whole_core)


def plan_kind(
    layout: SegmentLayout,
    model: Any,
    options: FitOptions,
    workers: int,
    threads: int,
    memory: int,
    joining: int = 0,
) -> RefitPlan:
    """Divide a worker's memory for a refit of a kind other than documents.

    Parameters
    ----------
    layout, workers, threads, memory
        As of `plan_refit`.
    model : type
        A class of `MODELS`.
    options : FitOptions
        Of its `Options`.
    joining : int
        As of `plan_rows`.

    Raises
    ------
    BoundExceeded
        As `plan_rows` and `plan_moments`.
    """
    foundation = layout.foundation
    if isinstance(foundation, VectorsFoundation):
        return plan_moments(layout, workers, memory, foundation.columns, foundation.dimension)
    beside = Blockmodel.beside_rows(foundation) if isinstance(foundation, EdgesFoundation) else 0
    copies = model.row_copies(options)
    shape = options.topics, workers, threads, memory
    return plan_rows(layout, *shape, copies, beside, joining)


def plan_rows(
    layout: SegmentLayout,
    k: int,
    workers: int,
    threads: int,
    memory: int,
    row_copies: int,
    beside: int = 0,
    joining: int = 0,
) -> RefitPlan:
    """Divide a worker's memory for a refit of any kind: sweeps that sum up what k states need.

    Parameters
    ----------
    layout : SegmentLayout
        Of the store.
    k : int
        States.
    workers, threads, memory, row_copies
        As of `plan_refit`.
    beside : int
        Bytes that the last step holds beside those copies.
    joining : int
        Bytes that joining the segments takes, for each row block that is read.

    Raises
    ------
    BoundExceeded
        The budget cannot hold the work: names the parts.
    """
    shapes = layout.foundation.shapes(RowBlock()).values()
    # a row contracted for each state
    sums = 8 * k * max(prod(shape[1:]) for shape in shapes)
    # a block as it is read, its sum, one half, and as floats
    task = int(SLACK * (4 * layout.block_bytes + _SUMS_COPIES * sums)) + joining
    gathered = int(SLACK * (strip_sums_held(layout.row_blocks, sums) + 1) * sums)
    finishing = 8 * row_copies * layout.foundation.rows * k + beside
    least = PROCESS_BYTES + gathered + max(task, finishing)
    if least > memory:
        raise BoundExceeded(
            f"a refit of {k} states needs {mebibytes(least)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(task - joining)} a row block"
            f"{with_pieces(joining)}, {mebibytes(gathered)} what they say, "
            f"{mebibytes(finishing)} finishing) but the budget is {mebibytes(memory)}; raise "
            "--memory or ask for fewer"
        )
    in_flight = max(1, min(threads, (memory - PROCESS_BYTES - gathered) // task))
    peak = PROCESS_BYTES + gathered + max(in_flight * task, finishing)
    kept = -(-layout.row_blocks // workers) * layout.block_bytes
    keep = peak + kept <= memory
    return RefitPlan(keep, 0, int(in_flight), 1, int(peak + kept * keep))


def plan_moments(
    layout: SegmentLayout, workers: int, memory: int, columns: int, dimension: int
) -> RefitPlan:
    """Divide a worker's memory for a fit of moments, in one place, of the sums of all rows.

    Parameters
    ----------
    layout : SegmentLayout
        Of the store.
    workers, memory
        As of `plan_refit`.
    columns, dimension : int
        Of the sketch s and of a row d.

    Raises
    ------
    BoundExceeded
        The budget cannot hold the work: names the parts.
    """
    shapes = layout.foundation.shapes(RowBlock())
    orders = 4 if "fourth" in shapes else 3
    tensors = 8 * (columns**orders + dimension**2 * (2 if "squares" in shapes else 1))
    # as they are read, their sum, of all rows, and of a half
    gathered = int(SLACK * 4 * layout.state_bytes)
    finishing = int(SLACK * _TENSOR_COPIES * tensors)
    peak = PROCESS_BYTES + gathered + finishing
    if peak > memory:
        raise BoundExceeded(
            f"a fit of moments of {dimension} numbers and a sketch of {columns} needs "
            f"{mebibytes(peak)} on each worker ({mebibytes(PROCESS_BYTES)} the process, "
            f"{mebibytes(gathered)} the sums, {mebibytes(finishing)} tensors of them) but the "
            f"budget is {mebibytes(memory)}; raise --memory, or create the store with fewer "
            "--sketch-columns"
        )
    kept = -(-layout.row_blocks // workers) * layout.block_bytes
    keep = peak + kept <= memory
    return RefitPlan(keep, 0, 1, 1, peak + kept * keep)

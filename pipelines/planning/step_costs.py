"""Costs of single steps, measured on a sample."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PilotCosts:
    """Seconds of the steps of create.

    read, cut : seconds of one thread to read a passage, and to split a sampled passage into words
    choose : seconds to make vocabulary and basis from a pilot of the usual size
    """

    read: float
    cut: float
    choose: float


@dataclass(frozen=True)
class ReadCosts:
    """Costs and yield of reading shards.

    sampled_bytes : stored bytes that were read for the measurement
    read : seconds of one thread to count and project a stored byte, while other threads read, too
    open_shard : seconds of one thread to open and read a tiny shard
    counts : bytes of projected counts for each stored byte
    passages, tokens : passages and tokens for each stored byte
    """

    sampled_bytes: float
    read: float
    open_shard: float
    counts: float
    passages: float
    tokens: float


@dataclass(frozen=True)
class BlockCosts:
    """Seconds of steps for a row block while all threads work, and of other steps of a refit.

    add : seconds to add up a byte of projected counts
    write, load : seconds to zero, pack and write a row block, and seconds to read one
    copy : seconds of one thread to copy the files of a row block and hash them
    disk_bytes, files : bytes and files on disk of a row block of a segment
    core_rows, evidence, topic_rows : seconds to collect, for one row block, the co-occurrences of
        core words, the whitened third moments, and the rows of topics
    whitening, rotation, finish : seconds of these steps of a refit, which are not by row block
    pairs : seconds to prepare pair counts for refinement
    refinement : seconds of a round of refinement for one row block
    renewal : seconds of the step of a round of refinement that is not by row block
    """

    add: float
    write: float
    load: float
    copy: float
    disk_bytes: float
    files: int
    core_rows: float
    evidence: float
    topic_rows: float
    whitening: float
    rotation: float
    finish: float
    pairs: float
    refinement: float
    renewal: float


@dataclass(frozen=True)
class StepCosts:
    """Costs of the steps of all jobs on a worker with `threads` threads."""

    threads: int
    pilot: PilotCosts
    reading: ReadCosts
    blocks: BlockCosts

"""Costs of single steps, measured on a sample."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PilotCosts:
    """Seconds of the steps of create.

    read, cut : seconds of one thread for a passage: to read it, and to split a sampled one,
        into words
    choose : float Seconds to make vocabulary and basis from a pilot of the usual size.
    """

    read: float
    cut: float
    choose: float


@dataclass(frozen=True)
class ReadCosts:
    """Costs and yield of reading shards.

    sampled_bytes : stored bytes that were read for the measurement
    read : seconds of one thread to count and project a stored byte, while the others read, too
    open_shard : seconds of one thread for the smallest shard
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
    """Seconds for one row block on each thread, and for steps of a refit that run alone.

    add : seconds to add up a byte of projected counts.
    write, load : seconds to zero, pack and write a row block, or to read one.
    copy : seconds of one thread to copy the files of a row block, with their hashes.
    disk_bytes, files : bytes and files on disk of a row block of a segment.
    core_rows, evidence, topic_rows : steps of a refit
    whitening, rotation, finish : steps of a refit that run alone
    pairs : seconds to prepare pair counts for refinement.
    refinement, renewal : seconds of a round of refinement, and of its step that runs alone.
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
    """Costs of the steps of all jobs on a worker with a number of threads."""

    threads: int
    pilot: PilotCosts
    reading: ReadCosts
    blocks: BlockCosts

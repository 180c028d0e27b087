"""Costs of single steps, measured on a sample."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PilotCosts:
    """Seconds of the steps of create.

    Parameters
    ----------
    read, cut : float Seconds of one thread for a passage: to read it, and to split a sampled one
        into words.
    choose : float Seconds to make vocabulary and basis from a pilot of the usual size.
    """

    read: float
    cut: float
    choose: float


@dataclass(frozen=True)
class ReadCosts:
    """Costs and yield of reading shards.

    Parameters
    ----------
    sampled_bytes : float
        Stored bytes that were read for the measurement.
    read : float
        Seconds of one thread to count and project a stored byte, while the others read, too.
    open_shard : float
        Seconds of one thread for the smallest shard.
    counts : float
        Bytes of projected counts for each stored byte.
    passages, tokens : float
        Passages and tokens for each stored byte.
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

    Parameters
    ----------
    add : float Seconds to add up a byte of projected counts.
    write, load : float Seconds to zero, pack and write a row block, or to read one.
    copy : float Seconds of one thread to copy the files of a row block, with their hashes.
    disk_bytes, files : float, int
        Bytes and files on disk of a row block of a segment.
    core_rows, evidence, topic_rows : float
        Steps of a refit.
    whitening, rotation, finish : float
        Steps of a refit that run alone.
    pairs : float Seconds to prepare pair counts for refinement.
    refinement, renewal : float Seconds of a round of refinement, and of its step that runs alone.
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

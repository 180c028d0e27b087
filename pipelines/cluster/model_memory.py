"""Memory of jobs that hold a model: passes over documents, and what is written of shards."""

from __future__ import annotations

from streaming_moments.errors import BoundExceeded
from streaming_moments.models import topic_reading
from streaming_moments.pipelines.cluster.memory import (
    BATCH_BYTES,
    DECODE_FACTOR,
    LIMITS,
    PROCESS_BYTES,
    SLACK,
    ReadingPlan,
    longest_batch,
    mebibytes,
    reading_bytes,
    row_group_room,
)
from streaming_moments.storage.formats import ReadLimits

# Shares of a batch that are held at a time, while they are sampled and as Parquet encodes them.
_SHARE_ARRAYS = 8
_MODEL_ARRAYS = 4  # topics, raw topics, and as documents are read with them; one on its way


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
    >>> from streaming_moments.pipelines.cluster.memory import MEBIBYTE
    >>> plan_polish(10_000, 20, threads=2, memory=1024 * MEBIBYTE).in_flight
    2
    """
    # sums of a group and of a shard, topics in lanes, what is encoded and what is written; the
    # shares of one document
    adding = 5 * _topic_bytes(n_words, n_topics) + _longest_shares(n_words, n_topics, limits)
    what = "a pass", f"the sum of {n_topics} topics"
    model = _MODEL_ARRAYS * _topic_bytes(n_words, n_topics)
    return plan_with_model(model, adding, what, threads, memory, limits)


def plan_transform(
    n_words: int,
    n_topics: int,
    threads: int,
    memory: int,
    limits: ReadLimits = LIMITS,
    passage_words: int | None = None,
) -> ReadingPlan:
    """Divide a worker's memory for a job that writes the shares of topics in documents.

    Parameters
    ----------
    n_words, n_topics : int
        n, k.
    threads, memory, limits
        As in `plan_reading`.
    passage_words : int, optional
        Of the passages that documents are cut into, which have shares each.

    Raises
    ------
    BoundExceeded
        The budget cannot hold one task: names the parts.

    Examples
    --------
    >>> from streaming_moments.pipelines.cluster.memory import MEBIBYTE
    >>> plan_transform(10_000, 20, threads=2, memory=1024 * MEBIBYTE).in_flight
    2
    """
    passages = limits.batch_documents
    if passage_words is not None:
        passages += longest_batch(limits.document_bytes) // (2 * passage_words)
    # topics smoothed, on their way there and in lanes; shares of one document and of a batch
    sharing = 3 * _topic_bytes(n_words, n_topics) + _longest_shares(n_words, n_topics, limits)
    sharing += _SHARE_ARRAYS * 8 * n_topics * passages
    what = "a transform", f"shares of {n_topics} topics"
    model = _MODEL_ARRAYS * _topic_bytes(n_words, n_topics)
    return plan_with_model(model, sharing, what, threads, memory, limits)


def plan_with_model(
    model: int,
    beside: int,
    what: tuple[str, str],
    threads: int,
    memory: int,
    limits: ReadLimits = LIMITS,
) -> ReadingPlan:
    """Divide a worker's memory for a job of which each worker holds a model.

    Parameters
    ----------
    model, beside : int
        Bytes of the model and its copies, and of what a task makes beside what it reads.
    what : (str, str)
        What the job and what is made beside are called.
    threads, memory, limits
        As in `plan_reading`.

    Raises
    ------
    BoundExceeded
        The budget cannot hold one task: names the parts.

    Examples
    --------
    >>> from streaming_moments.pipelines.cluster.memory import MEBIBYTE
    >>> what = "decoding", "posteriors"
    >>> plan_with_model(100 * MEBIBYTE, MEBIBYTE, what, 2, 1024 * MEBIBYTE).in_flight
    2
    """
    model, beside = int(SLACK * model), int(SLACK * beside)
    free = memory - PROCESS_BYTES - model
    text = reading_bytes(limits.document_bytes)
    decoded = limits.row_group_bytes or row_group_room(free // threads - text - beside)
    task = text + DECODE_FACTOR * decoded + beside
    in_flight = min(threads, free // task)
    if in_flight < 1:
        raise BoundExceeded(
            f"{what[0]} needs {mebibytes(memory - free + task)} on each worker "
            f"({mebibytes(PROCESS_BYTES)} the process, {mebibytes(model)} the model, "
            f"{mebibytes(beside)} {what[1]}, {mebibytes(task - beside)} reading) but the budget "
            f"is {mebibytes(memory)}; raise --memory, or lower --max-document-bytes or "
            "--max-row-group-bytes"
        )
    return ReadingPlan(BATCH_BYTES, in_flight, decoded, memory - free + in_flight * task)


def _topic_bytes(n_words: int, n_topics: int) -> int:
    """Of topics, with the columns that fill the lanes."""
    return 8 * n_words * (n_topics + topic_reading.LANES)


def _longest_shares(n_words: int, n_topics: int, limits: ReadLimits) -> int:
    """Bytes of the shares of each word of one document."""
    return _topic_bytes(min(n_words, limits.document_bytes // 2), n_topics)

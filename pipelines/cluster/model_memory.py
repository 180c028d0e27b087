"""Memory of jobs that hold a model: passes over documents, and what is written of shards."""

from __future__ import annotations

from streaming_moments.models import topic_reading
from streaming_moments.pipelines.cluster.memory import (
    LIMITS,
    ReadingPlan,
    longest_batch,
    plan_reading,
)
from streaming_moments.storage.formats import ReadLimits

# Shares of a batch that are held at a time, while they are sampled and as Parquet encodes them.
_SHARE_ARRAYS = 8
_MODEL_ARRAYS = 4  # topics, raw topics, and as documents are read with them; one on its way


def plan_polish(
    n_words: int, n_topics: int, threads: int, memory: int, limits: ReadLimits = LIMITS
) -> ReadingPlan:
    """Divide a worker's memory for passes over documents; errors as `plan_reading`.

    Each task reads some shards for a model of k topics of n words.
    """
    # sums of a group and of a shard, topics in lanes, what is encoded and what is written; the
    # shares of one document
    adding = 5 * _topic_bytes(n_words, n_topics) + _longest_shares(n_words, n_topics, limits)
    held = {"the model": _MODEL_ARRAYS * _topic_bytes(n_words, n_topics)}
    beside = {f"the sum of {n_topics} topics": adding}
    return plan_reading(threads, memory, limits, "a pass", held, beside)


def plan_transform(
    n_words: int,
    n_topics: int,
    threads: int,
    memory: int,
    limits: ReadLimits = LIMITS,
    passage_words: int | None = None,
) -> ReadingPlan:
    """Divide a worker's memory for a job that writes shares of topics; errors as `plan_reading`.

    Documents that are cut into passages of `passage_words` have shares for each passage.
    """
    passages = limits.batch_documents
    if passage_words is not None:
        passages += longest_batch(limits.document_bytes) // (2 * passage_words)
    # topics smoothed, on their way there and in lanes; shares of one document and of a batch
    sharing = 3 * _topic_bytes(n_words, n_topics) + _longest_shares(n_words, n_topics, limits)
    sharing += _SHARE_ARRAYS * 8 * n_topics * passages
    held = {"the model": _MODEL_ARRAYS * _topic_bytes(n_words, n_topics)}
    beside = {f"shares of {n_topics} topics": sharing}
    return plan_reading(threads, memory, limits, "a transform", held, beside)


def _topic_bytes(n_words: int, n_topics: int) -> int:
    """Of topics, with the columns that fill the lanes."""
    return 8 * n_words * (n_topics + topic_reading.LANES)


def _longest_shares(n_words: int, n_topics: int, limits: ReadLimits) -> int:
    """Bytes of the shares of each word of one document."""
    return _topic_bytes(min(n_words, limits.document_bytes // 2), n_topics)

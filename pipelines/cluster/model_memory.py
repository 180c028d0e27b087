"""Plan the memory of jobs that hold a model: passes over documents, and topic shares of shards."""

from __future__ import annotations

from streaming_moments.models.reading import topic_reading
from streaming_moments.pipelines.cluster.memory import (
    LIMITS,
    ReadingPlan,
    longest_batch,
    plan_reading,
)
from streaming_moments.storage.formats import ReadLimits

# A task holds this many arrays with the topic shares of a batch of documents, while it samples
# shares and encodes them as Parquet.
_SHARE_ARRAYS = 8
# A worker holds this many arrays of topics: the topics, the raw topics, the topics with which it
# reads documents, and a copy of one of these while it is sent.
_MODEL_ARRAYS = 4


def plan_polish(
    n_words: int, n_topics: int, threads: int, memory: int, limits: ReadLimits = LIMITS
) -> ReadingPlan:
    """Divide the memory of a worker for passes over documents; errors as in `plan_reading`.

    Each task reads some shards for a model of k topics of n words.
    """
    # A task holds five arrays as large as the topics: the sums of a group and of a shard, the
    # topics padded to a multiple of `LANES`, and its result twice, as encoded and as written. It
    # also holds the topic shares of one document.
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
    """Divide the memory of a worker to write shares of topics; errors as in `plan_reading`.

    Documents that are split into passages of `passage_words` have shares for each passage.
    """
    passages = limits.batch_documents
    if passage_words is not None:
        passages += longest_batch(limits.document_bytes) // (2 * passage_words)
    # A task holds the smoothed topics three times: as they are, in transit, and padded to a
    # multiple of `LANES`. It also holds the topic shares of one document and of a batch.
    sharing = 3 * _topic_bytes(n_words, n_topics) + _longest_shares(n_words, n_topics, limits)
    sharing += _SHARE_ARRAYS * 8 * n_topics * passages
    held = {"the model": _MODEL_ARRAYS * _topic_bytes(n_words, n_topics)}
    beside = {f"shares of {n_topics} topics": sharing}
    return plan_reading(threads, memory, limits, "a transform", held, beside)


def _topic_bytes(n_words: int, n_topics: int) -> int:
    """Return the bytes of the topics, whose columns are padded to a multiple of `LANES`."""
    return 8 * n_words * (n_topics + topic_reading.LANES)


def _longest_shares(n_words: int, n_topics: int, limits: ReadLimits) -> int:
    """Return the bytes of the topic shares of all words of the longest document."""
    return _topic_bytes(min(n_words, limits.document_bytes // 2), n_topics)

"""Samples: the beginning of a document about each topic, from a few shards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice

import numpy as np
import pyarrow as pa

from streaming_moments.errors import ShardError
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.page import SampleDocument
from streaming_moments.storage.counting.reading import index_of
from streaming_moments.storage.documents import ids_of, read_chunks
from streaming_moments.storage.files.backends import storage_errors
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.parts import SEALED_NAME
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.shards import PARTITIONS, Shard, files_of
from streaming_moments.storage.store.store import MomentStore

_SHARDS = 8
_LIMITS = ReadLimits(1 << 20, 1 << 20, 500, 32 << 20)
_TOKENS = 20  # with this many known words, a document's score is half of its share of the topic
_SHOWN = 280  # show at most this many characters of a passage
_MORE = " \N{HORIZONTAL ELLIPSIS}"
_BEGINS = 4  # find a passage in its document by this many of its first words


def sample_documents(
    store: MomentStore,
    fitted: MomentStore,
    model: TopicModel,
    storage_options: Mapping[str, object] | None = None,
) -> dict[int, SampleDocument]:
    """Return one sample document about each topic, by the number of the topic.

    Reads the first 500 documents, or the first MiB, of eight shards that are spread over the
    ledger, including the latest. Skips shards of token ids, and shards that no longer exist or that
    this machine cannot read. A topic that is not the main topic of any document is left out.
    `fitted` is `store` with the words of the model; see `storage.operations.lineages.store_for`.
    """
    if fitted.policy is None or model.vocabulary != fitted.vocabulary.fingerprint:
        return {}
    if not fitted.policy.runs_here:
        return {}  # without the tokeniser on this machine, the page shows no documents
    index = index_of(fitted.vocabulary, fitted.policy)
    best: dict[int, tuple[float, SampleDocument]] = {}
    for record, texts in _read(store, storage_options):
        counted = index.counted(texts)
        batch = counted.batch
        proportions = model.transform(batch)
        topics = proportions.argmax(axis=1)
        shares = proportions.max(axis=1)
        scores = shares * batch.lengths / (batch.lengths + _TOKENS)
        for topic in np.unique(topics[batch.lengths > 0]).tolist():
            row = int(np.where(topics == topic, scores, -1.0).argmax())
            if scores[row] > best.get(topic, (0.0, None))[0]:
                document = int(np.searchsorted(counted.begins, row, side="right")) - 1
                part = row - int(counted.begins[document])
                text = texts[document].as_py()
                text = text.decode() if isinstance(text, bytes) else text
                begins = fitted.policy.cut(fitted.policy.words(text))[part][:_BEGINS]
                called = _called(record, document, store, storage_options)
                sample = SampleDocument(
                    record.url, document + 1, float(shares[row]), _from(text, begins), called
                )
                best[topic] = float(scores[row]), sample
    return {topic: sample for topic, (_, sample) in sorted(best.items())}


def _read(
    store: MomentStore, storage_options: Mapping[str, object] | None
) -> Iterator[tuple[ShardRecord, pa.Array]]:
    """Yield the first chunk of texts of some shards."""
    # never read shards that other stores counted before a merge, even if this machine could
    own = store.ledger().of_segments(part for part in store.commit.segments if not part.origin)
    records = [one for one in own if not one.url.startswith(PARTITIONS)]
    places = sorted(
        {*np.linspace(0, len(records) - 1, _SHARDS).astype(int).tolist()} if records else ()
    )
    for place in places[::-1]:
        record = records[place]
        shard = Shard(record.url, record.size)
        try:
            if sum(state.size for state in files_of(shard, storage_options)) != record.size:
                continue
            chunks = read_chunks(shard, store.form, _LIMITS, storage_options)
            with closing(chunks):
                texts, _ = next(chunks)
        except ShardError:
            continue  # the page shows no documents of an unreadable shard
        yield record, texts


def _called(
    record: ShardRecord,
    row: int,
    store: MomentStore,
    storage_options: Mapping[str, object] | None,
) -> str:
    """Return the id of a document of an inbox, or the name of its file in a folder, or ""."""
    try:
        if record.url.endswith(SEALED_NAME):
            fs, path = open_file_system(record.url, storage_options)
            with fs.open(path, "rb") as lines:
                found = json.loads(next(islice(lines, row, None))).get("id")
            return "" if found is None else str(found)
        shard = Shard(record.url, record.size)
        names = ids_of(shard, store.form, None, _LIMITS, storage_options)
        known = (name for some in names for name in some.to_pylist())
        return next(islice(known, row, None), None) or ""
    except (ShardError, StopIteration):
        return ""  # without an id the page names the document by its position
    except storage_errors():
        return ""


def _from(text: str, begins: list[str]) -> str:
    """Return a few lines of a text, from where the words `begins` first follow one another."""
    found = re.search(r"[\W\d_]*".join(map(re.escape, begins)), text, re.IGNORECASE)
    start = found.start() if found and begins else 0
    shown = " ".join(text[start : start + 2 * _SHOWN].split())
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN].rsplit(" ", 1)[0] + _MORE
    return _MORE.lstrip() + " " + shown if start else shown

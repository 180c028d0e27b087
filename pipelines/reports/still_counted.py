"""Find which documents in the output of a transform a store still counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.reports.page import SampleDocument
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.ledger import read_ledger
from streaming_moments.storage.operations.staleness import forgotten_since
from streaming_moments.storage.shards import Shard, files_of
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.top_documents import beginning

_LIMITS = ReadLimits(1 << 20, 1 << 20, 500, 32 << 20)
_SAME = 40  # look up a document by this many of its first characters


def still_counted(
    store: MomentStore,
    name: str,
    found: Mapping[int, Sequence[Any]],
    storage_options: Mapping[str, object] | None = None,
) -> tuple[dict[int, tuple[Any, ...]], int]:
    """Return documents or rows, by topic, without forgotten ones; also how many are left out.

    If nothing was forgotten since the fit, nothing is left out. Otherwise, a document is left out
    if the store does not count its shard, or if its shard has new content without the document.
    Rows of a shard with new content are all left out, because rows have no text to compare. `found`
    holds `SampleDocument` or `NearRow` objects, in order.
    """
    if forgotten_since(store, name) == 0:
        return {number: tuple(some) for number, some in found.items()}, 0
    held: dict[str, dict[str, Any]] = {}
    for some in found.values():
        for one in some:
            held.setdefault(_shard(one), {})[_key(one)] = one
    kept = {
        (url, key): one
        for url, wanted in held.items()
        for key, one in _held(store, name, url, wanted, storage_options).items()
    }
    left = {
        number: tuple(kept[place] for one in some if (place := (_shard(one), _key(one))) in kept)
        for number, some in found.items()
    }
    return left, sum(map(len, found.values())) - sum(map(len, left.values()))


def _held(
    store: MomentStore,
    name: str,
    url: str,
    wanted: Mapping[str, Any],
    storage_options: Mapping[str, object] | None,
) -> Mapping[str, Any]:
    """Return the wanted documents that a shard still holds, with their current positions."""
    record = store.ledger().find(url)
    if record is None:
        return {}
    version = store.models[name].version
    if store.commit.keeps(version):
        first = store.log(version)[-1]
        before = read_ledger(store.folder, first.segments, store.ledger(), first.sums).find(url)
        if before is not None and before.fingerprint == record.fingerprint:
            return wanted
    texts = {
        one.text.rstrip(" \N{HORIZONTAL ELLIPSIS}"): key
        for key, one in wanted.items()
        if isinstance(one, SampleDocument)
    }
    starts: dict[str, list[str]] = {}
    for text in texts:
        starts.setdefault(text[:_SAME], []).append(text)
    lengths = {len(start) for start in starts}
    found, shard, row = dict[str, Any](), Shard(url, record.size), 0
    try:
        if sum(state.size for state in files_of(shard, storage_options)) != record.size:
            return {}
        for chunk, _ in read_chunks(shard, store.form, _LIMITS, storage_options):
            if not isinstance(chunk, pa.Array):
                return {}
            for value in chunk.to_pylist():
                row += 1
                line = beginning(value.decode() if isinstance(value, bytes) else value)
                near = (text for length in lengths for text in starts.get(line[:length], ()))
                for text in near:
                    if line.startswith(text):
                        found.setdefault(texts[text], replace(wanted[texts[text]], number=row))
    except ShardError:
        return {}  # do not show documents that cannot be read now, because they may be deleted
    return found


def _shard(one: Any) -> str:
    return str(one.shard if isinstance(one, SampleDocument) else one.source)


def _key(one: Any) -> str:
    return f"{one.number} {one.text}" if isinstance(one, SampleDocument) else f"{one.row}"

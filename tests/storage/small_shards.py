"""Shards written for the tests of readers, and the expected results."""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from streaming_moments.statistics.counts.batch import CountBatch, concatenate
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import DEFAULT_LIMITS, FORMATS, IdChunk, ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat

TERMS = ("sea", "law", "ship", "été", "हिन्दी")
TERM_IDS = (9, 3, 7, 10**9, 0)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
    ".xz": lambda content: lzma.compress(content, preset=0),
}
ID_VOCABULARY = Vocabulary(("nine", "three", "seven"), core=2, token_ids=(9, 3, 7))


def vocabulary_for(policy: TokenPolicy) -> Vocabulary:
    return Vocabulary(TERMS, core=2, policy=policy.fingerprint)


def parquet(rows: int | None = None, **columns: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, row_group_size=rows)
    return stream.getvalue()


def lda_c(documents: list[tuple[list[int], list[int]]]) -> bytes:
    lines = (
        " ".join([str(len(ids)), *(f"{i}:{c}" for i, c in zip(ids, counts, strict=True))])
        for ids, counts in documents
    )
    return "".join(f"{line}\n" for line in lines).encode()


def jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"n": 1, "text": text}) + "\n" for text in texts).encode()


def separated(texts: list[str], delimiter: str = ",") -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerows([("n", "text"), *enumerate(texts)])
    return stream.getvalue().encode()


def lines(texts: list[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def zipped(texts: list[str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"{number:03}.txt", text)
    return stream.getvalue()


# Documents of texts, by the format that holds them; of a folder, each of its files.
TEXTS_AS: dict[str, Callable[[list[str]], bytes]] = {
    "parquet": lambda texts: parquet(3, text=texts),
    "text": lines,
    "directory": lambda texts: texts[0].encode(),
    "jsonl": jsonl,
    "csv": separated,
    "tsv": lambda texts: separated(texts, "\t"),
    "zip": zipped,
}
# Documents of ids and their counts.
IDS_AS: dict[str, Callable[[list[tuple[list[int], list[int]]]], bytes]] = {
    "lda-c": lda_c,
    "parquet": lambda lists: parquet(
        3,
        ids=pa.array([ids for ids, _ in lists], pa.list_(pa.int64())),
        counts=pa.array([counts for _, counts in lists], pa.list_(pa.int64())),
    ),
    "jsonl": lambda lists: "".join(
        json.dumps({"ids": ids, "counts": counts}) + "\n" for ids, counts in lists
    ).encode(),
}
# What can be compressed as a whole: Parquet and zip have compressions of their own.
WRITTEN = [
    (kind, held, suffix)
    for kind, held in [*((kind, "texts") for kind in TEXTS_AS), *((kind, "ids") for kind in IDS_AS)]
    for suffix in (COMPRESS if kind not in ("parquet", "zip") else [""])
]


def put_as(kind: str, held: str, suffix: str, place: str, texts: list[str]) -> Shard:
    """Write texts of single words of `TERMS`, or their ids, as a shard of a format."""
    form = FORMATS[kind]
    if form.of_folder:
        for number, text in enumerate(texts):
            content = COMPRESS[suffix](TEXTS_AS[kind]([text])) if text else b""
            put(place, f"folder/{number:03}{suffix}", content)
        [shard] = list_shards([f"{place}/folder"], kind=kind)
        return shard
    if held == "texts":
        content = TEXTS_AS[kind](texts)
    else:
        counted = [Counter(text.split()) for text in texts]
        ids = dict(zip(TERMS, TERM_IDS, strict=True))
        content = IDS_AS[kind]([([ids[w] for w in c], list(c.values())) for c in counted])
    return put(place, f"{held}{form.suffixes[0]}{suffix}", COMPRESS[suffix](content))


def put(place: str, name: str, content: bytes) -> Shard:
    with fsspec.open(f"{place}/{name}", "wb", auto_mkdir=True) as stream:
        stream.write(content)
    return Shard(f"{place}/{name}", len(content))


def put_local(folder: Path, name: str, content: bytes) -> Shard:
    return put(str(folder), name, content)


def read_texts(
    shard: Shard, form: ShardFormat, limits: ReadLimits = DEFAULT_LIMITS
) -> Iterator[list[str]]:
    """Texts of each chunk of a shard."""
    for chunk, _ in read_chunks(shard, form, limits):
        yield chunk.cast(pa.large_string()).to_pylist()


def read_ids(
    shard: Shard, form: ShardFormat, limits: ReadLimits = DEFAULT_LIMITS
) -> Iterator[IdChunk]:
    """Chunks of a shard of ids."""
    return (chunk for chunk, _ in read_chunks(shard, form, limits))


def flat(chunks: Iterator[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(chunks))


def brute_force(texts: list[str], policy: TokenPolicy) -> tuple[list[list[int]], int]:
    passages = [Counter(passage) for text in texts for passage in policy.passages(text)]
    outside = sum(n for passage in passages for term, n in passage.items() if term not in TERMS)
    return [[passage[term] for term in TERMS] for passage in passages], outside


def read_all(
    shard: Shard,
    form: ShardFormat,
    vocabulary: Vocabulary,
    policy: TokenPolicy | None,
    limits: ReadLimits | None = None,
) -> tuple[CountBatch, int]:
    read = list(read_shard(shard, form, vocabulary, policy, limits or ReadLimits()))
    return concatenate([part.batch for part in read]), sum(part.outside for part in read)


def rows(batch: CountBatch) -> list[list[int]]:
    dense: list[list[int]] = batch.to_csr().toarray().tolist()
    return dense

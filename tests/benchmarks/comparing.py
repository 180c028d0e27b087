"""What it costs the coordinator to find out which of very many shards are new."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import listing_server
import numpy as np
import pyarrow as pa
from measure import Clock, peak_memory

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import compare
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import Ledger, table_of
from streaming_moments.storage.log.record_files import table_from_parquet, table_to_parquet
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import Shard

MANY, FILES = 1_000_000, 100_000
_FOLDER = 1000  # files
_CONTENT = b"x"
_HASH = f"sha256:{hashlib.sha256(_CONTENT).hexdigest()}"


@dataclass(frozen=True)
class ComparingMany:
    """Marked shards of a made-up listing, some of which a ledger knows; no storage answers."""

    known: float
    shards: int = MANY

    @property
    def name(self) -> str:
        return f"compare {self.shards:,} listed shards, {self.known:.0%} of them counted"

    def run(self, clock: Clock) -> Mapping[str, float]:
        content = _ledger(range(round(self.known * self.shards)))
        with connect() as cluster:
            before = peak_memory()
            with clock.running("list"):
                listed = ShardTable.joined([ShardTable.of(_listed(self.shards))])
            with clock.running("ledger"):
                ledger = Ledger({"0a": table_from_parquet(content, "made up")})
            with clock.running("compare"):
                compared = compare(ledger, listed, Run(cluster))
        assert len(compared.new) + compared.same == self.shards
        return {
            "new": len(compared.new),
            "ledger_bytes": len(content),
            "peak_bytes": peak_memory(),
            "added_bytes": peak_memory() - before,
        }


@dataclass(frozen=True)
class ListingS3:
    """Objects of a bucket as s3fs lists them, from a server on this machine."""

    shards: int = MANY

    @property
    def name(self) -> str:
        return f"list {self.shards:,} objects on S3"

    def run(self, clock: Clock) -> Mapping[str, float]:
        command = [sys.executable, listing_server.__file__, str(self.shards)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            endpoint = f"http://127.0.0.1:{int(server.stdout.readline())}"
            options = {"key": "none", "secret": "none", "endpoint_url": endpoint}
            before = peak_memory()
            try:
                with clock.running("list"):
                    listed = list_shards(["s3://bucket/corpus/"], options)
            finally:
                server.kill()
        assert len(listed) == self.shards
        return {"peak_bytes": peak_memory(), "added_bytes": peak_memory() - before}


@dataclass(frozen=True)
class ComparingFiles:
    """Files on the local disk, which has no marks: listed, and all of them hashed once more."""

    shards: int = FILES

    @property
    def name(self) -> str:
        return f"compare {self.shards:,} local files, all of them counted"

    def run(self, clock: Clock) -> Mapping[str, float]:
        with TemporaryDirectory() as place, connect() as cluster:
            _write(Path(place), self.shards)
            before = peak_memory()
            with clock.running("list"):
                listed = list_shards([place])
            marks = pa.array([_HASH] * self.shards, pa.string())
            table = _table(listed.urls, listed.columns["size"], marks)
            with clock.running("compare"):
                compared = compare(Ledger({"0a": table}), listed, Run(cluster))
        assert compared.same == self.shards
        return {"peak_bytes": peak_memory(), "added_bytes": peak_memory() - before}


def _listed(shards: int) -> Iterator[Shard]:
    return (Shard(_url(i), _FOLDER + i, f"{i:032x}") for i in range(shards))


def _url(place: int) -> str:
    return f"s3://bucket/{listing_server.key_of(place)}"


def _ledger(places: range) -> bytes:
    """Parquet of the records of some shards."""
    tables = [table_of([])]
    for begin in range(0, len(places), _FOLDER):
        some = places[begin : begin + _FOLDER]
        urls = pa.array([_url(i) for i in some])
        sizes = pa.array([_FOLDER + i for i in some])
        tables.append(_table(urls, sizes, pa.array([f"etag:{i:032x}" for i in some])))
    return table_to_parquet(pa.concat_tables(tables).combine_chunks())


def _table(urls: pa.Array, sizes: pa.Array, marks: pa.Array) -> pa.Table:
    ten = pa.array(np.full(len(urls), 10))
    return pa.table([urls, sizes, marks, ten, ten, ten], schema=table_of([]).schema)


def _write(folder: Path, files: int) -> None:
    for place in range(files):
        path = folder / f"{place // _FOLDER:03d}" / f"part-{place:06d}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_CONTENT)

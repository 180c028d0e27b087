"""Edges of a large graph, counted: grouped by node, and their lists; or in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Clock, peak_memory

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions, create
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions, create_kind
from streaming_moments.pipelines.jobs.outputs.neighbours import neighbours
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

_COMMUNITIES, _INSIDE, _SHARDS = 10, 0.8, 8


@dataclass(frozen=True)
class CountEdges:
    """Edges of ten communities in Parquet, four fifths inside; threads of this process."""

    lists: bool = True
    edges: int = 1_000_000
    nodes: int = 100_000

    @property
    def name(self) -> str:
        how = "as lists" if self.lists else "in any order"
        return f"graph of {self.edges:,} edges and {self.nodes:,} nodes counted {how}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        with TemporaryDirectory() as place, connect() as cluster:
            folder, run = Path(place), Run(cluster)
            self._write(folder / "edges", 0)
            shards = list_shards([str(folder / "edges")])
            if not self.lists:
                told = KindOptions(kind="edges"), CountingOptions(), PilotOptions()
                with clock.running("create"):
                    store = create_kind(str(folder / "store"), shards, *told, run)
                with clock.running("update"):
                    store = update(store, shards, run).store
                return {"edges": store.totals().edges, "peak_bytes": peak_memory()}
            with clock.running("neighbours"):
                lists = neighbours(shards, str(folder / "lists"), run)
            found = list_shards(lists.files)
            form = ShardFormat("parquet", ids_column="neighbours")
            options = PilotOptions(
                vocabulary_size=self.nodes,
                max_topics=_COMMUNITIES,
                min_documents=1,
                max_document_fraction=1.0,
            )
            with clock.running("create"):
                store = create(str(folder / "store"), found, form, None, options, run)
            with clock.running("update"):
                update(store, found, run)
        return {"nodes": lists.nodes, "edges": lists.edges, "peak_bytes": peak_memory()}

    def _write(self, folder: Path, seed: int) -> None:
        folder.mkdir()
        rng = np.random.default_rng(seed)
        own = rng.integers(self.nodes, size=self.edges)
        size = self.nodes // _COMMUNITIES
        near = own // size * size + rng.integers(size, size=self.edges)
        inside = rng.random(self.edges) < _INSIDE
        other = np.where(inside, near, rng.integers(self.nodes, size=self.edges))
        for number, rows in enumerate(np.array_split(np.arange(self.edges), _SHARDS)):
            table = pa.table({"source": own[rows], "target": other[rows]})
            pq.write_table(table, folder / f"{number}.parquet")

"""Completed rows of tables as Parquet, one file a shard, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.files.outputs import parquet_output
from streaming_moments.storage.proportions import proportions_file

SCORES = ("log_probability", "chow_liu_log_probability")


@dataclass(frozen=True, eq=False)
class CompletionsFile:
    """An open Parquet file of `completions_schema`; `url` exists only once the file is complete."""

    url: str
    writer: pq.ParquetWriter
    table: TableColumns

    @classmethod
    @contextmanager
    def create(
        cls,
        folder: OutputFolder,
        shard_url: str,
        table: TableColumns,
    ) -> Iterator[CompletionsFile]:
        """Put in place when the block ends without an error; errors as `parquet_output`."""
        schema, name = completions_schema(table, shard_url), proportions_file(shard_url)
        with parquet_output(folder, name, schema) as (url, writer):
            yield cls(url, writer, table)

    def write(
        self,
        first: int,
        rows: NDArray[np.int64],
        completed: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        logs: Sequence[NDArray[np.float64]],
    ) -> None:
        """Add rows numbered `first, first + 1, ...` of the shard.

        rows, completed : (rows, V) int64 categories; `rows` has -1 where one is missing
        probabilities : (rows, V) float64 of the completed categories, 1 for those that were known
        logs : (rows,) float64 in nats, one array for each of `SCORES`
        """
        values = [
            pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), list(categories))
            for codes, categories in zip(completed.T, self.table.categories, strict=True)
        ]
        columns = [
            *(one.cast(pa.string()) for one in values),
            pa.array(np.arange(first, first + len(rows), dtype=np.int64)),
            pa.array((rows < 0).sum(axis=1).astype(np.int32)),
            pa.FixedSizeListArray.from_arrays(pa.array(probabilities.ravel()), rows.shape[1]),
            *map(pa.array, logs),
        ]
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.writer.schema))


def completions_schema(table: TableColumns, shard_url: str) -> pa.Schema:
    """The columns of the table, then what is said of each row, under names that begin with "_".

    Examples
    --------
    >>> table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
    >>> completions_schema(table, "/rows/a.csv").names[:4]
    ['a', 'b', '_document', '_missing']
    """
    return pa.schema(
        [
            *((name, pa.string()) for name in table.names),
            ("_document", pa.int64()),
            ("_missing", pa.int32()),
            ("_probabilities", pa.list_(pa.float64(), table.number)),
            *((f"_{name}", pa.float64()) for name in SCORES),
        ],
        metadata={"shard": shard_url},
    )

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
    """An open file of rows.

    Parameters
    ----------
    url : str
        Where it appears once it is complete.
    writer : pyarrow.parquet.ParquetWriter
        Of `completions_schema`.
    table : TableColumns
        The columns.
    """

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
        """Add rows `first, first + 1, ...`.

        Parameters
        ----------
        first : int
            Number of the first of them in the shard.
        rows, completed : (rows, V) int64
            Categories, -1 where they are missing, and all of them.
        probabilities : (rows, V) float64
            Of the completed ones; 1 of those known.
        logs : (rows,) float64, one for each of `SCORES`
            Nats.
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

"""Memberships: all nodes of a graph by a model of its edges, as Parquet."""

from __future__ import annotations

import pyarrow as pa

from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.files.output_folders import MEMBERSHIPS, OutputFolder
from streaming_moments.storage.files.outputs import parquet_output

_ROWS = 1 << 17
_SCHEMA = pa.schema(
    [
        ("node", pa.large_string()),
        ("edges", pa.int64()),
        ("community", pa.int32()),
        ("memberships", pa.list_(pa.float64())),
        ("error", pa.float64()),
    ]
)


def write_memberships(model: Blockmodel, nodes: Vocabulary, output: OutputFolder) -> str:
    """Write one Parquet file with a row for each node, by falling degree of those at creation.

    Parameters
    ----------
    model : Blockmodel
        Of a store of edges.
    nodes : Vocabulary
        Of the store.
    output : OutputFolder
        Claimed for the model; the file appears whole or not at all.

    Returns
    -------
    str
        Its URL. `community` is the largest membership, null where a node has no edge; `error` the
        L1 error to be expected, null without halves.

    Raises
    ------
    OutputOfAnother
        Another model has claimed the folder meanwhile.
    StoreError
        The output cannot be written.
    """
    k = model.n_topics
    with parquet_output(output, MEMBERSHIPS, _SCHEMA) as (url, writer):
        for first in range(0, nodes.n_words, _ROWS):
            rows = slice(first, first + _ROWS)
            own, degrees = model.memberships[rows], model.degrees[rows]
            lists = pa.FixedSizeListArray.from_arrays(pa.array(own.ravel()), k)
            bars = None if model.node_bars is None else model.node_bars[rows]
            columns = [
                pa.array(nodes.terms[rows], pa.large_string()),
                pa.array(degrees),
                pa.array(own.argmax(axis=1).astype("int32"), mask=degrees == 0),
                lists.cast(pa.list_(pa.float64())),
                pa.nulls(len(own), pa.float64()) if bars is None else pa.array(bars),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))
    return url

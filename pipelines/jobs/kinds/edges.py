"""Create stores of edges: list the nodes of all shards, and make a sketch if there are many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.pipelines.jobs.create import of_share, quotas
from streaming_moments.pipelines.jobs.kinds.base import (
    KindJobs,
    Made,
    Sampling,
    Sight,
    create_by,
)
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.foundation import WHOLE_NODES, EdgesFoundation
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.storage.counting.graphs.edge_batches import (
    added_counts,
    require_few_nodes,
    sample_edges,
)
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.lazy_libraries import pa, pc

# number of edges that a pilot reads for each passage that a pilot of documents would read
_EDGES_EACH = 100
_COLUMNS = 22
# Number of blocks after which the eigensolver stops. The directions of communities have converged
# by then. Most other directions of a graph's sketch are noise and never converge.
_BLOCKS = 10


def _form(shape: KindOptions) -> EdgeColumns:
    names = shape.names or ("source", "target")
    if len(names) != 2 or len(set(names)) != 2:
        raise InvalidInput(
            f"edges need two different columns, got {', '.join(names)}",
            "give them as {create.columns:source,target}",
        )
    return EdgeColumns(names[0], names[1], shape.directed)


def _made(sampling: Sampling) -> Made:
    shape, counting, options = sampling.shape, sampling.counting, sampling.options
    run, limits = sampling.run, sampling.limits
    columns = _form(shape)
    # read the names of nodes from all shards, but edges only from some shards
    drawn_of, more = dict(quotas(sampling.shards, options)), (limits, run.storage_options)
    told = counting.form, columns
    calls = [
        (shard, *told, _EDGES_EACH * quota, options.seed + place, *more, own.pilot_bytes)
        for place, shard in enumerate(sampling.shards)
        for quota in [drawn_of.get(shard, 0)]
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("reading nodes", sample_edges, calls, sampling.in_flight)
    counted = added_counts([sample.nodes for sample in samples])
    require_few_nodes([counted], limits, shape.sketch_columns or _COLUMNS)
    known = counted["name"].combine_chunks()
    nodes = Vocabulary(tuple(known.to_pylist()), core_of(len(known)))
    sketch, drawn = None, pa.concat_tables([sample.edges for sample in samples])
    if shape.sketch_columns is not None or nodes.n_words > WHOLE_NODES:
        source, target = (
            np.asarray(pc.index_in(drawn[name], value_set=known), dtype=np.int64)
            for name in ("source", "target")
        )
        both = source != target
        square = (nodes.n_words, nodes.n_words)
        together = sp.csr_array((np.ones(int(both.sum())), (target[both], source[both])), square)
        if not columns.directed:
            together = sp.csr_array(together + together.T)
        # count a duplicate edge once
        together.data[:] = 1.0
        wanted = shape.sketch_columns or _COLUMNS
        sketch = sketch_of(together, nodes, wanted, options.seed, _BLOCKS)
    foundation = EdgesFoundation(nodes, sketch, columns.directed, counting.halves)
    shards = of_number(len(sampling.shards), "shard")
    origin = f"{nodes.n_words:,} nodes and {drawn.num_rows:,} edges of {shards}"
    if sketch is not None:
        origin += (
            "; an edge that two shards hold counts twice (lists by `streaming-moments neighbours` "
            "hold it once)"
        )
    return Made(foundation, asdict(columns), origin)


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find two columns of names, or of whole numbers."""
    if {"source", "target"} <= columns.keys():
        return [Sight("edges from source to target", usual=True)]
    names = [name for name, what in columns.items() if what in ("word", "whole")]
    return [Sight.of_columns("edges between", names)] if len(names) == len(columns) == 2 else []


EDGES = KindJobs(
    EdgesFoundation,
    frozenset({"columns", "sketch_columns", "directed"}),
    partial(create_by, _made),
    _form,
    sights=_sights,
)

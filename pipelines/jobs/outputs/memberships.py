"""Memberships: write the communities of all nodes of a graph as Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.column_files import array_of, write_columns
from streaming_moments.storage.files.output_folders import MEMBERSHIPS, OutputFolder

_ROWS = 1 << 17


def write_memberships(model: Blockmodel, nodes: Vocabulary, output: OutputFolder) -> str:
    """Write one Parquet file with a row for each node, by decreasing degree, and return its URL.

    The degree was counted when the store was created. `output` is claimed for the model, and the
    file appears whole or not at all. `community` is the community with the largest membership, or
    null for a node without edges. `error` is the expected L1 error of the memberships, or null if
    the store does not count the edges in two halves. Raises OutputOfAnother if another model has
    claimed the folder meanwhile.
    """
    return write_columns(output, MEMBERSHIPS, _parts(model, nodes))


def _parts(model: Blockmodel, nodes: Vocabulary) -> Iterator[dict[str, Any]]:
    for first in range(0, nodes.n_words, _ROWS):
        names = nodes.terms[first : first + _ROWS]
        said = model.read(np.arange(first, first + len(names)))
        lists = array_of(said["memberships"]).cast(pa.list_(pa.float64()))
        yield {"node": pa.array(names, pa.large_string()), **said, "memberships": lists}

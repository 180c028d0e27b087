"""Kinds of statistics: the class of the foundation of each kind.

The layers above have registries of their own, with a line for each kind.
`storage/kinds/registry.py` says how the shards of a kind are read and how its records are sent.
`pipelines/jobs/kinds/registry.py` says how stores of the kind are made, and
`pipelines/reports/kinds/registry.py` which reports the kind has.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.views.foundation import ViewsFoundation

_ALL: tuple[Any, ...] = (
    CountsFoundation,
    ViewsFoundation,
    SequencesFoundation,
    VectorsFoundation,
    EdgesFoundation,
    SetsFoundation,
)
KINDS: Mapping[str, Any] = MappingProxyType({one.kind: one for one in _ALL})

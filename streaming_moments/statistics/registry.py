"""Kinds: the foundations that statistics can be gathered on, one line each.

The layers above have a line of each kind in tables of their own: `storage/kinds/registry.py` (how
its shards are read and its records sent), `pipelines/jobs/kinds/registry.py` (how its stores are
made), and `pipelines/reports/kinds/registry.py` (what is said of them).
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

"""Kinds: the foundations on which statistics can be gathered, one line each.

Each layer above has a registry of its own, with a line for each kind: how its shards are read and
its records are sent (`storage/kinds/registry.py`), how its stores are made
(`pipelines/jobs/kinds/registry.py`), and its reports (`pipelines/reports/kinds/registry.py`).
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

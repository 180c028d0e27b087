"""Kinds: the foundations that statistics can be gathered on, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streaming_moments.statistics.counts.foundation import CountsFoundation

KINDS: Mapping[str, Any] = MappingProxyType({CountsFoundation.kind: CountsFoundation})

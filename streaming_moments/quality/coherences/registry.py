"""COHERENCES: all coherences, one line each, in the order in which pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.quality.coherences.base import Coherence
from streaming_moments.quality.coherences.npmi import NPMI
from streaming_moments.quality.coherences.umass import UMASS

COHERENCES: Mapping[str, Coherence] = MappingProxyType(
    {
        NPMI.key: NPMI,
        UMASS.key: UMASS,
    }
)


def followed() -> list[Coherence]:
    """Coherences that pages and nights show."""
    return [one for one in COHERENCES.values() if one.followed]

"""Measures of the coherence of topics: a file for each, and a line for each in `registry`."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.quality.coherences.base import Coherence as Coherence
    from streaming_moments.quality.coherences.base import TopWords as TopWords
    from streaming_moments.quality.coherences.npmi import npmi_coherence as npmi_coherence
    from streaming_moments.quality.coherences.registry import COHERENCES as COHERENCES
    from streaming_moments.quality.coherences.umass import umass_coherence as umass_coherence

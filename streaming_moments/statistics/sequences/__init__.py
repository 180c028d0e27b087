"""Sequences of symbols: sums over windows of three symbols, wherever sequences are cut."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.statistics.sequences.foundation import (
        SequencesFoundation as SequencesFoundation,
    )
    from streaming_moments.statistics.sequences.windows import SymbolBatch as SymbolBatch

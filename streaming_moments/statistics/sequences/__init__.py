"""Sequences of symbols: their windows of three, wherever they are cut."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.sequences.foundation import SequencesFoundation
    from streaming_moments.statistics.sequences.windows import SymbolBatch

__all__ = ["SequencesFoundation", "SymbolBatch"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {"foundation": ("SequencesFoundation",), "windows": ("SymbolBatch",)},
    )

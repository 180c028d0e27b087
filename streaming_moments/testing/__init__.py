"""For who adds a kind of statistics or a model: its laws, its recovery, a small store."""

from streaming_moments.testing.laws import check_laws
from streaming_moments.testing.recovery import check_rate, matched

__all__ = ["check_laws", "check_rate", "matched"]

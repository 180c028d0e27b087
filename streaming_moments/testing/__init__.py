"""For who adds a kind of statistics or a model: its laws, its recovery, a small store."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.testing.laws import check_laws
    from streaming_moments.testing.recovery import check_rate, matched

__all__ = ["check_laws", "check_rate", "matched"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "laws": ("check_laws",),
            "recovery": ("check_rate", "matched"),
        },
    )

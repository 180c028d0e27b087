"""Tools to test a new kind of statistics or a new model: laws, recovery, a small store."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.testing.laws import check_laws as check_laws
    from streaming_moments.testing.recovery import check_rate as check_rate
    from streaming_moments.testing.recovery import matched as matched

"""The nightly run: its configuration, its gates, and the report, page and metrics it leaves."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.nightly.config import NightlyConfig, read_config
    from streaming_moments.pipelines.nightly.night import nightly
    from streaming_moments.pipelines.nightly.report import NightReport

__all__ = ["NightReport", "NightlyConfig", "nightly", "read_config"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "config": ("NightlyConfig", "read_config"),
            "night": ("nightly",),
            "report": ("NightReport",),
        },
    )

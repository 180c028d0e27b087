"""The nightly run: its configuration, its gates, and the report, page and metrics it leaves."""

from streaming_moments.pipelines.nightly.config import NightlyConfig, read_config
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.nightly.report import NightReport

__all__ = ["NightReport", "NightlyConfig", "nightly", "read_config"]

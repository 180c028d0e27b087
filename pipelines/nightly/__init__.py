"""The nightly run: its configuration, its gates, and its report, page and metrics."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.nightly.config import NightlyConfig as NightlyConfig
    from streaming_moments.pipelines.nightly.config import read_config as read_config
    from streaming_moments.pipelines.nightly.night import nightly as nightly
    from streaming_moments.pipelines.nightly.report import NightReport as NightReport

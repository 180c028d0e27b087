"""Gauges: numbers of the service, its store and its inbox, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from streaming_moments.pipelines.service.ingest_worker.steps import NAMES
from streaming_moments.pipelines.service.recent_counts import Rates
from streaming_moments.pipelines.service.state_view import View
from streaming_moments.statistics.counts.lengths.room import LARGEST_TOTAL

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

# HTTP status codes: from 400 on, the service has refused the call; from 500 on, it has failed.
_REFUSED, _FAILED = 400, 500


@dataclass(frozen=True)
class Live:
    """A number that describes the store or the inbox; every call of `/metrics` reads it again."""

    name: str
    says: str
    of: Callable[[View], float]


LIVE = (
    Live("version", "Version of the store.", lambda view: view.store.version),
    Live("documents", "Documents in the store.", lambda view: view.store.commit.documents),
    Live("tokens", "Vocabulary tokens in the store.", lambda view: view.store.commit.tokens),
    Live("shards", "Shards in the ledger of the store.", lambda view: view.store.commit.shards),
    Live("inbox_batches", "Pending batches of the inbox.", lambda view: view.backlog.batches),
    Live("inbox_documents", "Pending documents of the inbox.", lambda view: view.backlog.documents),
    Live("inbox_bytes", "Bytes of pending documents.", lambda view: view.backlog.nbytes),
    Live(
        "inbox_age_seconds",
        "Age of the oldest pending document.",
        lambda view: view.backlog.age.total_seconds(),
    ),
    Live("inbox_seals", "Seals of the inbox.", lambda view: view.sealed),
    Live(
        "inbox_seals_uncounted", "Seals that no version counts yet.", lambda view: view.counting.lag
    ),
    Live(
        "counting_stalled_seconds",
        "How long counting has failed or made no progress; 0 while it works.",
        lambda view: view.counting.stalled(),
    ),
    Live(
        "set_aside_shards",
        "Shards that the store cannot count, and that are set aside.",
        lambda view: len(view.counting.set_aside),
    ),
    Live(
        "set_aside_documents",
        "Documents in shards that are set aside.",
        lambda view: view.counting.documents_set_aside,
    ),
    Live(
        "sum_filled",
        "Share of 2^62 that the largest sum of the store may reach.",
        lambda view: (
            sum(part.largest for part in view.store.commit.segments if part.sign > 0)
            / LARGEST_TOTAL
        ),
    ),
    Live(
        "model_loaded",
        "1 if a model answers calls, else 0.",
        lambda view: int(view.published is not None),
    ),
    Live(
        "problems",
        "Reads of the store or the inbox that failed lately.",
        lambda view: len(view.problems),
    ),
)
_SILENCE = "Time since the accumulator of this service last reported."


@dataclass(frozen=True)
class Gauges:
    """Counters of the service; make them with `new`."""

    registry: CollectorRegistry
    calls: Counter
    seconds: Histogram
    documents: Counter
    nbytes: Counter
    texts: Counter
    rates: Rates = field(default_factory=Rates)

    @classmethod
    def new(cls) -> Gauges:
        """Make the gauges of a new service."""
        registry = CollectorRegistry()
        name = "streaming_moments_service"
        labels = ["call", "status"]
        return cls(
            registry,
            Counter(f"{name}_calls", "Calls answered.", labels, registry=registry),
            Histogram(
                f"{name}_seconds",
                "Seconds of calls.",
                ["call"],
                registry=registry,
                buckets=_SECONDS,
            ),
            Counter(f"{name}_documents", "Documents acknowledged.", registry=registry),
            Counter(f"{name}_bytes", "Bytes of acknowledged documents.", registry=registry),
            Counter(f"{name}_texts", "Texts whose topics were answered.", registry=registry),
        )

    def answered(self, call: str, status: int, seconds: float, asked: bool = False) -> None:
        """Count a call.

        `asked` means that the answer only asked a browser for a token. Such a call does not count
        as refused.
        """
        self.calls.labels(call, str(status)).inc()
        self.seconds.labels(call).observe(seconds)
        self.rates.add("calls")
        if status >= _REFUSED and not asked:
            self.rates.add("failed" if status >= _FAILED else "refused")

    def accepted(self, documents: int, nbytes: int) -> None:
        """Count acknowledged documents."""
        self.documents.inc(documents)
        self.nbytes.inc(nbytes)
        self.rates.add("documents", documents)

    def read(self, texts: int) -> None:
        """Count texts for which the service has answered with topics."""
        self.texts.inc(texts)
        self.rates.add("texts", texts)

    def text(self, view: View, silence: float | None = None) -> bytes:
        """Return the answer of `/metrics`.

        `silence` is the seconds since the accumulator of this service last reported.
        """
        now = CollectorRegistry()
        values = [(one.name, one.says, one.of(view)) for one in LIVE]
        if silence is not None:
            values.append(("accumulator_silence_seconds", _SILENCE, silence))
        for name, says, value in values:
            Gauge(f"streaming_moments_{name}", says, registry=now).set(value)
        says = "Consecutive failures of each step of the accumulator; 0 while it works."
        steps = Gauge("streaming_moments_step_failures", says, ["step"], registry=now)
        for name in NAMES:
            steps.labels(name).set(sum(one.failures for one in view.steps if one.name == name))
        return bytes(generate_latest(now) + generate_latest(self.registry))

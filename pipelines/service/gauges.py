"""Gauges: what the service counts of its calls, and shows of its store, for Prometheus."""

from __future__ import annotations

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

_REFUSED, _FAILED = 400, 500  # codes of HTTP from which on calls are


@dataclass(frozen=True)
class Gauges:
    """What is counted; make them with `new`."""

    registry: CollectorRegistry
    calls: Counter
    seconds: Histogram
    documents: Counter
    nbytes: Counter
    texts: Counter
    rates: Rates = field(default_factory=Rates)

    @classmethod
    def new(cls) -> Gauges:
        """Gauges of a service that has just begun."""
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
            Counter(f"{name}_bytes", "Bytes of accepted documents.", registry=registry),
            Counter(f"{name}_texts", "Texts with answered topics.", registry=registry),
        )

    def answered(self, call: str, status: int, seconds: float) -> None:
        """Count a call."""
        self.calls.labels(call, str(status)).inc()
        self.seconds.labels(call).observe(seconds)
        self.rates.add("calls")
        if status >= _REFUSED:
            self.rates.add("failed" if status >= _FAILED else "refused")

    def accepted(self, documents: int, nbytes: int) -> None:
        """Count documents that were acknowledged."""
        self.documents.inc(documents)
        self.nbytes.inc(nbytes)
        self.rates.add("documents", documents)

    def read(self, texts: int) -> None:
        """Count texts whose topics were answered."""
        self.texts.inc(texts)
        self.rates.add("texts", texts)

    def text(self, view: View, silence: float | None = None) -> bytes:
        """All of it, with what is known of store and inbox now, and since when nothing is heard."""
        now, commit = CollectorRegistry(), view.store.commit
        values = (
            ("version", "Version of the store.", view.store.version),
            ("documents", "Documents in the store.", commit.documents),
            ("tokens", "Vocabulary tokens in the store.", commit.tokens),
            ("shards", "Shards in the ledger of the store.", commit.shards),
            ("inbox_batches", "Pending batches.", view.backlog.batches),
            ("inbox_documents", "Pending documents.", view.backlog.documents),
            ("inbox_bytes", "Bytes of pending documents.", view.backlog.nbytes),
            (
                "inbox_age_seconds",
                "Age of the oldest pending document.",
                view.backlog.age.total_seconds(),
            ),
            ("inbox_seals", "Seals of the inbox.", view.sealed),
            ("inbox_seals_uncounted", "Seals that are not counted yet.", view.counting.lag),
            (
                "counting_stalled_seconds",
                "Since cycles fail or seals stay uncounted; 0 if counting works.",
                view.counting.stalled(),
            ),
            (
                "set_aside_shards",
                "Shards that cannot be counted.",
                len(view.counting.set_aside),
            ),
            (
                "set_aside_documents",
                "Documents in shards that cannot be counted.",
                view.counting.documents_set_aside,
            ),
            (
                "sum_filled",
                "Share of the largest possible sum that the store has used.",
                sum(part.largest for part in commit.segments if part.sign > 0) / LARGEST_TOTAL,
            ),
            ("model_loaded", "Whether a model is loaded.", int(view.published is not None)),
            ("problems", "Failed reads of the store or the tokens.", len(view.problems)),
        )
        heard = "Since the last heartbeat of the accumulator.", silence
        silent = () if silence is None else (("accumulator_silence_seconds", *heard),)
        for name, says, value in (*values, *silent):
            Gauge(f"streaming_moments_{name}", says, registry=now).set(value)
        says = "Consecutive failures of a step of the accumulator; 0 if it works."
        steps = Gauge("streaming_moments_step_failures", says, ["step"], registry=now)
        for name in NAMES:
            steps.labels(name).set(sum(one.failures for one in view.steps if one.name == name))
        return bytes(generate_latest(now) + generate_latest(self.registry))

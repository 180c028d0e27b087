"""What a report page shows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReportTopic:
    """One topic.

    Parameters
    ----------
    topic : int
        Its number, the same from night to night.
    weight : float
        Share of the corpus.
    words : tuple of (str, float, float)
        Its most probable words, some 30: each with its probability in the topic and in the
        corpus, from which relevance at any lambda follows.
    npmi : float, optional
        Coherence.
    note : str
        What happened to it: "new", "split from 3"; empty if nothing did.
    """

    topic: int
    weight: float
    words: tuple[tuple[str, float, float], ...]
    npmi: float | None = None
    note: str = ""


@dataclass(frozen=True)
class ShareOverTime:
    """Share of each topic by date.

    Parameters
    ----------
    dates : tuple of str
        ISO 8601, rising.
    shares : tuple of tuple of float
        One row a date, one share a topic, in the order of the topics.
    note : str
        What they are, one sentence.
    """

    dates: tuple[str, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class TriedModel:
    """A model that was tried, and its mean NPMI; None where there is no model."""

    topics: int
    alpha0: float
    npmi: float | None
    chosen: bool = False


@dataclass(frozen=True)
class RunPoint:
    """One run: how far the corpus had drifted then; None where it was not measured."""

    date: str
    captured: float | None = None
    outside_share: float | None = None
    effective_documents: float | None = None
    pair_distance: float | None = None
    documents: int | None = None
    outcome: str = ""


@dataclass(frozen=True)
class LedgerRow:
    """One shard; `problem` says why it was left out, and is empty if it was counted."""

    shard: str
    documents: int
    tokens: int
    outside: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class StepTime:
    """A step, and its seconds."""

    step: str
    seconds: float


@dataclass(frozen=True)
class ReportGate:
    """A condition of publishing: the value found, its bound, and whether it holds."""

    name: str
    value: float | None
    bound: float
    holds: bool


@dataclass(frozen=True)
class ReportPage:
    """All that one page shows; what is left empty is left out of it.

    Parameters
    ----------
    title : str
        Of the page.
    store : str
        URL.
    time : str
        ISO 8601, UTC, of the run.
    outcome : str
        "published", "refused", "nothing new", "failed".
    facts : mapping
        Names and values at the head of the page: documents, tokens, version and so on.
    reasons : tuple of str
        Why the model was refused, or words and basis made anew.
    topics : tuple of ReportTopic
        In the order of their numbers.
    distances : tuple of tuple of float
        (k, k) distances between them, see `topic_map.topic_distances`.
    shares : ShareOverTime
        Of the topics.
    tried : tuple of TriedModel
        For coherence by k.
    spectrum, exact_spectrum : tuple of float
        Eigenvalues seen through the basis, and exact.
    runs : tuple of RunPoint
        The last runs, this one last.
    gates : tuple of ReportGate
        Conditions of publishing.
    ledger : tuple of LedgerRow
        Shards, the latest first.
    shards : int
        In the store, of which the ledger may show the latest only.
    steps : tuple of StepTime
        In order.
    """

    title: str
    store: str
    time: str
    outcome: str
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    topics: tuple[ReportTopic, ...] = ()
    distances: tuple[tuple[float, ...], ...] = ()
    shares: ShareOverTime = ShareOverTime()
    tried: tuple[TriedModel, ...] = ()
    spectrum: tuple[float, ...] = ()
    exact_spectrum: tuple[float, ...] = ()
    runs: tuple[RunPoint, ...] = ()
    gates: tuple[ReportGate, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    shards: int = 0
    steps: tuple[StepTime, ...] = ()

"""What a report and its page tell of a run, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streaming_moments.quality.differences import bar_of_difference
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.representatives import NearRow

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.candidates import Candidate


@dataclass(frozen=True)
class StepReport:
    """One step: its name, how long it took in seconds, and what it found."""

    step: str
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """A condition of publishing: the value found, its bound, and whether it holds."""

    name: str
    value: float | None
    bound: float
    holds: bool


@dataclass(frozen=True)
class SampleDocument:
    """The beginning of a document, or passage, that is mostly of one topic.

    shard, number : where it is, and its place there, from 1
    share : of the topic in it
    text : a few lines of it
    id : empty where it is unknown
    """

    shard: str
    number: int
    share: float
    text: str
    id: str = ""


@dataclass(frozen=True)
class TopicReport:
    """One topic of a model.

    topic : its number, the same from night to night
    weight : share of the corpus
    npmi : coherence
    relevant : most relevant words, lambda 0.7
    words : most probable words, each with its probability in the topic and in the corpus, from
        which the relevance at any lambda follows
    bar : expected L1 error of the topic, where halves of the documents are kept
    word_bars : standard errors of the probabilities of `words`; empty where they are unknown
    told : other numbers of the topic, by name
    sample, further : a document that is mostly of it, and others if they were searched for
    coordinates : the largest numbers of a cluster or a factor, each with its name
    nearest : rows nearest to the mean of a cluster
    coherences : other coherences by key, where they were computed
    """

    topic: int
    weight: float
    npmi: float | None
    relevant: tuple[str, ...]
    words: tuple[tuple[str, float, float], ...]
    bar: float | None = None
    word_bars: tuple[float, ...] = ()
    label: str | None = None
    told: Mapping[str, float] = field(default_factory=dict)
    sample: SampleDocument | None = None
    further: tuple[SampleDocument, ...] = ()
    coordinates: tuple[tuple[str, float], ...] = ()
    nearest: tuple[NearRow, ...] = ()
    coherences: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicChange:
    """How a topic differs from that of an earlier model.

    topic : its number now; None if it is gone
    name : some of its words
    before, now : its share in both models; None where it does not exist
    distance : total variation of its words, where it exists in both
    bar : standard error of the difference of both shares; None where it is unknown
    note : "new", "moved", "split from 3"
    spreads, bars : how far the mean of a cluster has moved, in its standard deviations and in error
        bars
    """

    topic: int | None
    name: str
    before: float | None = None
    now: float | None = None
    distance: float | None = None
    note: str = ""
    spreads: float | None = None
    bars: float | None = None
    bar: float | None = None

    @property
    def step(self) -> float:
        """Difference of its shares; of a topic that was not there, or is gone, its share."""
        return (self.now or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class ClusterPlane:
    """Clusters in the two directions along which their means differ most.

    places : means, centred at the mean of all rows
    ellipses : of one standard deviation, as half axes and the angle of the first in radians
    bars : error bars of the means; empty where they are unknown
    before : each mean in the earlier model, or None
    shares : share of the variance between the means, along each direction
    """

    places: tuple[tuple[float, float], ...]
    ellipses: tuple[tuple[float, float, float], ...]
    bars: tuple[float, ...] = ()
    before: tuple[tuple[float, float] | None, ...] = ()
    shares: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Measure:
    """A number of each cluster, or factor, as a chart of bars; arrays in the order of the topics.

    bars : standard errors; empty where they are unknown
    noise : values for data that is only noise, about 0; empty where these mean nothing
    note : one sentence
    percent : whether values are shares
    """

    name: str
    values: tuple[float, ...]
    bars: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    note: str = ""
    percent: bool = False


@dataclass(frozen=True)
class ShareOverTime:
    """Share of each topic by date.

    dates : ISO 8601, rising; days of the documents, where they are known
    shares : one row a date, one share a topic, in the order of the topics
    note : what they are, one sentence
    bars : standard errors of `shares`; empty where they are unknown
    """

    dates: tuple[str, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    note: str = ""
    bars: tuple[tuple[float, ...], ...] = ()

    @property
    def steps(self) -> tuple[tuple[float, float | None], ...]:
        """Of each topic, by how much its share changed from first to last, and the error of it."""
        if not self.shares:
            return ()
        pairs = zip(self.shares[0], self.shares[-1], strict=True)
        bars: Iterable[tuple[float | None, float | None]] = ((None, None) for _ in self.shares[0])
        if self.bars:
            bars = zip(self.bars[0], self.bars[-1], strict=True)
        return tuple(
            (now - before, bar_of_difference(*bar))
            for (before, now), bar in zip(pairs, bars, strict=True)
        )


@dataclass(frozen=True)
class RunPoint:
    """One run: how far the corpus had drifted then, where that was measured.

    `until` is the last day of the documents that there were, where they have days.
    """

    date: str
    until: str | None = None
    drift: Drift | None = None
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
    topics : tuple of TopicReport
        In the order of their numbers.
    notes : mapping
        What happened to topics, by number: "new", "split from 3".
    distances : tuple of tuple of float
        (k, k) distances between them, see `topic_map.topic_distances`.
    correlations : tuple of tuple of float
        (k, k) of their shares over documents, of a model that was refined.
    shares : ShareOverTime
        Of the topics, night by night.
    periods : ShareOverTime
        Of the topics in the documents of each day, week or month.
    tried : tuple of Candidate
        For coherence by k.
    chosen : (int, float), optional
        Number of topics and alpha0 of that which is shown.
    spectrum, exact_spectrum : tuple of float
        Eigenvalues seen through the basis, and exact.
    runs : tuple of RunPoint
        The last runs, this one last.
    gates : tuple of Gate
        Conditions of publishing.
    ledger : tuple of LedgerRow
        Shards, the latest first.
    shards : int
        In the store, of which the ledger may show the latest only.
    steps : tuple of StepReport
        In order; a page needs no values of them.
    version : int, optional
        Of the store.
    sentence : str
        What the model says of itself.
    states : mapping
        Of a model without topics: numbers of its states, by name.
    state_words : mapping
        Of each view of such a model, the most probable words of each state.
    picture : str
        Of such a model, in lines of text.
    changes : tuple of TopicChange
        Since the model that was published before.
    since : str
        ISO 8601, of that.
    diff : str
        Command that says what the store gained since.
    links : tuple of (str, str)
        What else there is to see, each with its URL relative to the page.
    each : str
        URL under which the number of a topic is a page of its own; empty where there are none.
    what : str
        What `topics` are: "topic", "cluster", "factor"; "state" where there are `states`.
    counted : (str, str, str)
        What the ledger counts: documents, tokens, and what of them lies outside.
    plane : ClusterPlane, optional
        Of clusters.
    measures : tuple of Measure
        Of clusters and factors.
    """

    title: str
    store: str
    time: str
    outcome: str
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    topics: tuple[TopicReport, ...] = ()
    notes: Mapping[int, str] = field(default_factory=dict)
    distances: tuple[tuple[float, ...], ...] = ()
    correlations: tuple[tuple[float, ...], ...] = ()
    shares: ShareOverTime = ShareOverTime()
    periods: ShareOverTime = ShareOverTime()
    tried: tuple[Candidate, ...] = ()
    chosen: tuple[int, float] | None = None
    spectrum: tuple[float, ...] = ()
    exact_spectrum: tuple[float, ...] = ()
    runs: tuple[RunPoint, ...] = ()
    gates: tuple[Gate, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    shards: int = 0
    steps: tuple[StepReport, ...] = ()
    version: int | None = None
    sentence: str = ""
    states: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    state_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    picture: str = ""
    changes: tuple[TopicChange, ...] = ()
    since: str = ""
    diff: str = ""
    links: tuple[tuple[str, str], ...] = ()
    each: str = ""
    what: str = "topic"
    counted: tuple[str, str, str] = ("documents", "tokens", "outside")
    plane: ClusterPlane | None = None
    measures: tuple[Measure, ...] = ()

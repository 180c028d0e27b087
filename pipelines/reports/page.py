"""Content of a report and its page, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streaming_moments.printing.number_texts import distinct, short
from streaming_moments.quality.differences import bar_of_difference
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.representatives import NearRow

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.candidates import Candidate
    from streaming_moments.storage.merging.origin_shares import OriginShares


@dataclass(frozen=True)
class StepReport:
    """One step: its name, its seconds, and its results."""

    step: str
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """A bound for publishing: the measured value, the bound, and whether the value satisfies it.

    `least` says whether the bound is a minimum or a maximum. `unknown` says why there is no value.
    Reports of earlier releases have neither.
    """

    name: str
    value: float | None
    bound: float
    holds: bool
    least: bool | None = None
    unknown: str = ""

    @property
    def measured(self) -> str:
        """Text of the value, or why it is unknown.

        Examples
        --------
        >>> Gate("documents", 1_200, 100, True).measured, Gate("drop", None, 0.1, True).measured
        ('1,200', 'not known')
        """
        if self.value is None or not math.isfinite(self.value):
            return self.unknown or "not known"
        return distinct(self.value, self.bound)[0]

    @property
    def allowed(self) -> str:
        """Text of the bound, such as "at least 100".

        Examples
        --------
        >>> Gate("documents", 120, 100, True, least=True).allowed
        'at least 100'
        """
        bound = short(self.bound) if self.value is None else distinct(self.value, self.bound)[1]
        return f"{self.side} {bound}".lstrip()

    @property
    def side(self) -> str:
        """Return "at least" for a minimum and "at most" for a maximum; empty if unknown.

        Examples
        --------
        >>> Gate("documents", 120, 100, True, least=True).side
        'at least'
        >>> Gate("drop of NPMI", 0.03, 0.02, False).side  # 0.03 violates a maximum of 0.02
        'at most'
        """
        least = self.least
        if least is None:
            if self.value is None or self.value == self.bound:
                return ""
            least = (self.value > self.bound) == self.holds
        return "at least" if least else "at most"


@dataclass(frozen=True)
class SampleDocument:
    """Beginning of a document or passage about one topic.

    shard, number : shard of the document, and its position in the shard, from 1
    share : share of the topic in the document or passage
    text : a few lines of the text
    id : id of the document; empty if unknown
    """

    shard: str
    number: int
    share: float
    text: str
    id: str = ""


@dataclass(frozen=True)
class TopicReport:
    """One topic of a model.

    topic : its number, the same in every nightly run
    weight : share of the corpus
    npmi : NPMI coherence
    relevant : most relevant words, with lambda 0.7
    words : most probable words, each with its probability in the topic and in the corpus; from
        these, a page computes the relevance for any lambda
    bar : expected L1 error of the topic, if the store has halves
    word_bars : standard errors of the probabilities of `words`; empty if unknown
    told : other numbers of the topic, by name
    sample, further : a document about the topic, and further ones if they were searched
    coordinates : for a cluster or a factor, the columns with its largest numbers, and these numbers
    nearest : rows nearest to the mean of a cluster
    coherences : other computed coherences by key
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
    """How a topic differs from the same topic of an earlier model.

    topic : its number in the later model; None if the topic no longer exists
    name : some of its words
    before, now : its share in the earlier and in the later model; None where it does not exist
    distance : total variation distance between its word probabilities in both models, if it exists
        in both
    bar : standard error of the difference of both shares; None if unknown
    note : "new", "moved", "split from 3"
    spreads, bars : move of the mean of a cluster, in standard deviations and in error bars
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
        """Difference of the two shares; where the topic does not exist, the share counts as 0."""
        return (self.now or 0.0) - (self.before or 0.0)


@dataclass(frozen=True)
class ClusterPlane:
    """Clusters in the two directions along which their means differ most.

    places : means of the clusters, relative to the mean of all rows
    ellipses : ellipses of one standard deviation, as half axes and the angle of the first axis in
        radians
    bars : error bars of the means; empty if unknown
    before : place of each cluster's mean in the earlier model, or None
    shares : share of the variance between the means, along each direction
    """

    places: tuple[tuple[float, float], ...]
    ellipses: tuple[tuple[float, float, float], ...]
    bars: tuple[float, ...] = ()
    before: tuple[tuple[float, float] | None, ...] = ()
    shares: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Measure:
    """A measure of each cluster or factor, for a bar chart.

    Arrays are in the order of the clusters or factors.

    bars : standard errors; empty if they are unknown
    noise : standard errors of the values of pure noise, which scatter about 0; empty if these have
        no meaning
    note : explanation of the measure in one sentence
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

    dates : ISO 8601, increasing; days of the documents, if they are known
    shares : a row for each date, with a share for each topic in order
    note : description in one sentence
    bars : standard errors of `shares`; empty if unknown
    rejected : whether the last row is of a model that was not published
    """

    dates: tuple[str, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    note: str = ""
    bars: tuple[tuple[float, ...], ...] = ()
    rejected: bool = False

    @property
    def steps(self) -> tuple[tuple[float, float | None], ...]:
        """Change of the share of each topic from the first to the last date, and its error."""
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
    """One run, with the drift of the corpus at that time, if it was measured.

    `until` is the last day of the documents that were counted before the run ended, if they have
    days.
    """

    date: str
    until: str | None = None
    drift: Drift | None = None
    documents: int | None = None
    outcome: str = ""

    @property
    def measured(self) -> bool:
        """Whether the run has a number that the charts of runs can show."""
        return self.drift is not None or self.documents is not None


@dataclass(frozen=True)
class LedgerRow:
    """One shard; `problem` is the reason if it was left out, otherwise empty."""

    shard: str
    documents: int
    tokens: int
    outside: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class ReportPage:
    """Everything that one page shows; empty parts are left out.

    title : title of the page
    store : URL of the store
    time : time of the run, ISO 8601, UTC
    outcome : "published", "rejected", "nothing new", "failed"
    facts : names and values at the head of the page: documents, tokens, version and so on
    reasons : why the model was rejected, or the store rebased
    error : error that stopped the run, which is shown as it is
    warnings : what may be wrong although the run succeeded, shown as it is
    topics : in the order of their numbers
    notes : what happened to topics, by number: "new", "split from 3"
    distances : (k, k) distances between the topics, see `topic_map.topic_distances`
    correlations : (k, k) correlations of the topics' shares over documents, for a refined model
    shares : shares of the topics in the models of the nightly runs
    periods : shares of the topics in the documents of each day, week or month
    origins : shares of the topics at each origin of a hub
    origin_changes : what has changed most over time at each of these origins
    tried : candidates for the chart of coherence
    chosen : (int, float), optional, number of topics and alpha0 of the shown candidate
    spectrum, exact_spectrum : eigenvalues of the second moment: as the basis preserves them, and
        exact ones
    runs : the last runs, this one last
    gates : bounds for publishing
    ledger : shards, the latest first
    shards : number of shards in the store; the ledger may show only the latest
    steps : steps in their order; a page does not show their values
    version : version of the store
    sentence : description that the model gives of itself
    states : numbers of the states of a model without topics, by name
    state_words : most probable words of each state of a model without topics, by view
    picture : picture of a model without topics, in lines of text
    changes : changes since the model that was published before
    since : time of that model, ISO 8601
    diff : command that shows which documents the store has gained since that model
    links : names and relative URLs of other pages
    at : the URL among `links` that leads to this page; empty if there is none
    each : URL prefix of the pages of topics by number; empty without such pages
    what : name of the parts: "topic", "cluster", "factor", or "state" if there are `states`
    counted : (str, str, str), names of the counts in the ledger: documents, tokens, and tokens
        outside the vocabulary
    plane : plane of the clusters
    measures : measures of clusters and factors
    advice : what would improve later models; a page shows it after the model
    """

    title: str
    store: str
    time: str
    outcome: str
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    topics: tuple[TopicReport, ...] = ()
    notes: Mapping[int, str] = field(default_factory=dict)
    distances: tuple[tuple[float, ...], ...] = ()
    correlations: tuple[tuple[float, ...], ...] = ()
    shares: ShareOverTime = ShareOverTime()
    periods: ShareOverTime = ShareOverTime()
    origins: tuple[OriginShares, ...] = ()
    origin_changes: tuple[str, ...] = ()
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
    at: str = ""
    each: str = ""
    what: str = "topic"
    counted: tuple[str, str, str] = ("documents", "tokens", "outside")
    plane: ClusterPlane | None = None
    measures: tuple[Measure, ...] = ()
    advice: tuple[str, ...] = ()

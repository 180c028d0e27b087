"""What the command line shows: plain values, which become tables or one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming_moments.bounds import error_radius
from streaming_moments.lengths import LengthHistogram
from streaming_moments.pipelines.candidates import Candidate, Selection
from streaming_moments.pipelines.memory import mebibytes
from streaming_moments.pipelines.update import UpdateResult
from streaming_moments.quality import relevance, top_words, topic_diversity
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.tokens import TokenPolicy
from streaming_moments.topic_model import TopicModel
from streaming_moments.vocabulary import Vocabulary

RELEVANCE_WEIGHT = 0.7
DIVERSITY_WORDS = 25
ERROR_DELTA = 0.05  # probability of a larger error than the radius
# The radius of M3 is 0.09 there; 77 whole speeches of 5 effective documents gave poor topics, their
# passages of 2,147 good ones.
FEW_DOCUMENTS = 1000


@dataclass(frozen=True)
class TopicLine:
    """One topic as people read it.

    Parameters
    ----------
    topic : int
        Its number.
    weight : float
        Share of the corpus.
    words : tuple of str
        Most relevant first.
    umass, npmi : float or None
        Coherence, None where it was not computed.
    """

    topic: int
    weight: float
    words: tuple[str, ...]
    umass: float | None = None
    npmi: float | None = None


@dataclass(frozen=True)
class Status:
    """A version of a store in numbers.

    With probability `1 - error_delta` each, M2 and M3 err by less than their radius in the
    Frobenius norm (Ruffini et al. 2018, Theorem 2); None without documents long enough. `warning`
    says why topics may be poor, with the remedy; empty when nothing speaks against them.
    """

    store: str
    version: int
    time: str
    message: str
    documents: int
    empty_documents: int
    effective_documents: float
    error_delta: float
    error_radius_m2: float | None
    error_radius_m3: float | None
    tokens: int
    outside_share: float | None
    shards: int
    segments: int
    words: int
    core: int
    basis_columns: int
    row_blocks: int
    state_bytes: int
    models: tuple[str, ...]
    tags: Mapping[str, str]
    vocabulary: str
    basis: str
    warning: str


@dataclass(frozen=True)
class LogLine:
    """One commit."""

    version: int
    time: str
    operation: str
    documents: int
    shards: int
    message: str
    skipped: tuple[tuple[str, str], ...]


def topic_lines(
    model: TopicModel, vocabulary: Vocabulary, number: int, weight: float = RELEVANCE_WEIGHT
) -> list[TopicLine]:
    """The topics with their words by relevance; a weight (lambda) of 1 ranks by probability.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.array([[0.9], [0.1]]), np.array([1.0]))
    >>> topic_lines(model, Vocabulary(("law", "sea"), core=2), number=1)[0].words
    ('law',)
    """
    scores = relevance(model.topics, model.word_probabilities, weight)
    lines = []
    for topic, words in enumerate(top_words(scores, number)):
        used = [word for word in words if np.isfinite(scores[word, topic])]
        lines.append(
            TopicLine(
                topic,
                float(model.weights[topic]),
                tuple(vocabulary.terms[word] for word in used),
                _known(model.umass[topic]),
                _known(model.npmi[topic]),
            )
        )
    return lines


def status_of(store: MomentStore) -> Status:
    """Numbers of a version."""
    histogram, commit, basis = store.length_histogram(), store.commit, store.basis
    empty = int(histogram.documents[histogram.lengths == 0].sum())
    outside = sum(record.outside for record in store.ledger())
    total = commit.tokens + outside
    columns = basis.core * (2 if commit.lineage.codocuments else 1)
    state = 8 * (basis.n_words * (basis.core + basis.packed + 2) + basis.core * columns)
    return Status(
        store=store.url,
        version=store.version,
        time=commit.time,
        message=commit.message,
        documents=histogram.n_documents,
        empty_documents=empty,
        effective_documents=histogram.effective_documents,
        error_delta=ERROR_DELTA,
        error_radius_m2=_radius(histogram, 2),
        error_radius_m3=_radius(histogram, 3),
        tokens=commit.tokens,
        outside_share=outside / total if total else None,
        shards=commit.shards,
        segments=len(commit.segments),
        words=basis.n_words,
        core=basis.core,
        basis_columns=basis.columns,
        row_blocks=store.row_blocks,
        state_bytes=state,
        models=tuple(store.models),
        tags=dict(store.commit.tags),
        vocabulary=basis.vocabulary,
        basis=basis.fingerprint,
        warning=_warning(histogram, store.policy),
    )


def log_lines(store: MomentStore) -> list[LogLine]:
    """The commits, the latest first."""
    return [
        LogLine(
            commit.version,
            commit.time,
            commit.operation,
            commit.documents,
            commit.shards,
            commit.message,
            commit.skipped,
        )
        for commit in store.log()
    ]


def model_scores(model: TopicModel) -> dict[str, float | None]:
    """Mean coherence of the topics, None where it was not computed, and their diversity.

    Examples
    --------
    >>> model_scores(TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5])))
    {'npmi': None, 'umass': None, 'diversity': 0.5}
    """
    number = min(DIVERSITY_WORDS, model.n_words)
    return {
        "npmi": _known(model.npmi.mean()),
        "umass": _known(model.umass.mean()),
        "diversity": topic_diversity(model.topics, number),
    }


def scores_line(model: TopicModel) -> str:
    """The scores of a model as people read them."""
    scores = model_scores(model)
    npmi, umass, diversity = scores["npmi"], scores["umass"], scores["diversity"]
    known = npmi is not None and umass is not None
    coherence = f"mean NPMI {npmi:.3f}, mean UMass {umass:.1f}, " if known else ""
    return f"{coherence}diversity of the top words {diversity:.2f}"


def print_topics(
    console: Console,
    lines: Sequence[TopicLine],
    title: str = "",
    weight: float = RELEVANCE_WEIGHT,
) -> None:
    """A table of topics."""
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("topic", justify="right")
    table.add_column("weight", justify="right")
    coherent = any(line.npmi is not None for line in lines)
    if coherent:
        table.add_column("NPMI", justify="right")
        table.add_column("UMass", justify="right")
    table.add_column(f"words by relevance (lambda {weight:g})", overflow="fold")
    for line in lines:
        scores = [] if not coherent else [_number(line.npmi, 2), _number(line.umass, 1)]
        table.add_row(str(line.topic), f"{line.weight:.1%}", *scores, " ".join(line.words))
    console.print(table)


def print_selection(console: Console, selection: Selection) -> None:
    """A table of numbers of topics, the best by NPMI marked."""
    table = Table(show_edge=False, pad_edge=False)
    coherent = selection.coherent
    scores = ["NPMI", "UMass 10", "UMass 20"] if coherent else []
    for name in ("topics", "alpha0", *scores, "captured", "smallest topic", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("", overflow="fold")
    best = selection.best
    for one in selection.candidates:
        numbers = [
            _number(one.npmi, 3),
            _number(one.umass, 1),
            _number(one.umass_20, 1),
        ] * coherent
        table.add_row(
            str(one.n_topics),
            f"{one.alpha0:g}",
            *numbers,
            _number(one.captured, 2),
            "" if one.smallest_weight is None else f"{one.smallest_weight:.1%}",
            _number(one.seconds, 2),
            one.refusal or ("best" if one is best else ""),
            style="bold" if one is best else "dim" if one.refusal else None,
        )
    console.print(table)


def print_status(console: Console, status: Status) -> None:
    """Two columns of names and values."""
    outside = "unknown" if status.outside_share is None else f"{status.outside_share:.1%}"
    rows = [
        ("store", status.store),
        ("version", f"{status.version} of {status.time}: {status.message}"),
        ("documents", f"{status.documents:,} ({status.empty_documents:,} without a known word)"),
        ("effective documents", f"{status.effective_documents:,.1f}"),
        (
            "error radius",
            f"M2 {_radius_text(status.error_radius_m2)}, M3 "
            f"{_radius_text(status.error_radius_m3)}: Theorem 2, each with probability "
            f"{1 - status.error_delta:.0%}",
        ),
        ("tokens", f"{status.tokens:,} in the vocabulary, {outside} outside"),
        ("shards", f"{status.shards:,} in {status.segments} segments"),
        ("vocabulary", f"{status.words:,} words, core {status.core:,}, {status.vocabulary[:12]}"),
        ("basis", f"{status.basis_columns} columns, {status.basis[:12]}"),
        ("statistics", f"{mebibytes(status.state_bytes)} in {status.row_blocks} row blocks"),
        ("models", ", ".join(status.models) or "none; run `streaming-moments refit`"),
        ("tags", ", ".join(f"{tag} is {model}" for tag, model in status.tags.items()) or "none"),
    ]
    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)
    if status.warning:
        console.print(Text(f"warning: {status.warning}", style="yellow"), soft_wrap=True)


def print_log(console: Console, lines: Sequence[LogLine]) -> None:
    """A table of commits."""
    table = Table(show_edge=False, pad_edge=False)
    for name in ("version", "time", "operation", "documents", "shards"):
        table.add_column(name, justify="left" if name in ("time", "operation") else "right")
    table.add_column("message", overflow="fold")
    for line in lines:
        message = line.message
        for url, reason in line.skipped:
            message += f"\nleft out {url}: {reason}"
        table.add_row(
            str(line.version),
            line.time,
            line.operation,
            f"{line.documents:,}",
            f"{line.shards:,}",
            message,
        )
    console.print(table)


def as_json(value: Status | TopicLine | LogLine | Candidate) -> dict[str, object]:
    """Fields by name; numbers that JSON lacks become null."""
    return {name: _finite(item) for name, item in asdict(value).items()}


def update_as_json(result: UpdateResult, final: MomentStore) -> dict[str, object]:
    """What an update did; `final` is the store afterwards, maybe compacted."""
    return {
        "store": final.url,
        "version": final.version,
        "segments": len(final.commit.segments),
        "counted": result.counted,
        "already": result.already,
        "replaced": result.replaced,
        "documents": result.documents,
        "tokens": result.tokens,
        "outside": result.outside,
        "bad": [{"url": error.url, "reason": error.reason} for error in result.bad],
    }


def _finite(item: object) -> object:
    return None if isinstance(item, float) and not math.isfinite(item) else item


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _radius(histogram: LengthHistogram, order: int) -> float | None:
    return error_radius(histogram, ERROR_DELTA, order) if histogram.longest >= order else None


def _radius_text(radius: float | None) -> str:
    return "unknown" if radius is None else f"{radius:.2g}"


def _warning(histogram: LengthHistogram, policy: TokenPolicy | None) -> str:
    """What speaks against topics from documents of these lengths."""
    effective = histogram.effective_documents
    if not histogram.n_documents or effective >= FEW_DOCUMENTS:
        return ""
    found = f"{effective:,.1f} effective documents are few, below {FEW_DOCUMENTS:,}"
    if policy is None:
        remedy = "count more documents, or token ids of passages instead of whole documents"
    elif policy.passage_words is not None:
        remedy = "count more documents (they are cut into passages already)"
    elif effective < histogram.n_documents / 2:
        return (
            f"{found}: a handful of long ones among {histogram.n_documents:,} rules the third "
            "moment; create the store anew with --passage-words 200"
        )
    else:
        remedy = "count more documents, or cut long ones by a new store with --passage-words 200"
    return f"{found}, and topics from them rough; {remedy}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"

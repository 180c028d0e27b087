"""What the command line shows: plain values, which become tables or one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from streaming_moments.drift import outside_share
from streaming_moments.pipelines.memory import mebibytes
from streaming_moments.pipelines.update import UpdateResult
from streaming_moments.quality import relevance, top_words
from streaming_moments.storage.store import MomentStore
from streaming_moments.topic_model import TopicModel
from streaming_moments.vocabulary import Vocabulary

RELEVANCE_WEIGHT = 0.7


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
    """A version of a store in numbers."""

    store: str
    version: int
    time: str
    message: str
    documents: int
    empty_documents: int
    effective_documents: float
    tokens: int
    outside_share: float | None
    captured: float | None
    days: tuple[str, str] | None
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


def topic_lines(model: TopicModel, vocabulary: Vocabulary, number: int) -> list[TopicLine]:
    """The topics with their words by relevance (lambda 0.7).

    Examples
    --------
    >>> model = TopicModel.from_topics(np.array([[0.9], [0.1]]), np.array([1.0]))
    >>> topic_lines(model, Vocabulary(("law", "sea"), core=2), number=1)[0].words
    ('law',)
    """
    scores = relevance(model.topics, model.word_probabilities, RELEVANCE_WEIGHT)
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


def documents_of(model: TopicModel) -> str:
    """What a model was fitted on, in words.

    Examples
    --------
    >>> from dataclasses import replace
    >>> model = TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5]))
    >>> documents_of(replace(model, since="2026-11-01", half_life=7.0))
    '0 documents since 2026-11-01, half as much after every 7 days (in floating point)'
    """
    words = f"{model.documents:,} documents"
    words += f" since {model.since}" if model.since else ""
    words += f" until {model.until}" if model.until else ""
    if model.half_life is not None:
        words += f", half as much after every {model.half_life:g} days (in floating point)"
    return words


def documents_as_json(model: TopicModel) -> dict[str, object]:
    """What a model was fitted on: documents, the window of days and the half-life in days."""
    names = ("documents", "since", "until", "half_life")
    return {name: getattr(model, name) for name in names}


def status_of(store: MomentStore) -> Status:
    """Numbers of a version."""
    histogram, commit, basis = store.length_histogram(), store.commit, store.basis
    empty = int(histogram.documents[histogram.lengths == 0].sum())
    outside = sum(record.outside for record in store.ledger())
    days = [part.dates for part in commit.segments if part.dates is not None]
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
        tokens=commit.tokens,
        outside_share=outside_share(commit.tokens, outside),
        captured=_known(store.load_model().captured) if store.models else None,
        days=None
        if not days
        else (min(part.first for part in days).isoformat(), max(p.last for p in days).isoformat()),
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


def print_topics(console: Console, lines: Sequence[TopicLine], title: str = "") -> None:
    """A table of topics."""
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("topic", justify="right")
    table.add_column("weight", justify="right")
    coherent = any(line.npmi is not None for line in lines)
    if coherent:
        table.add_column("NPMI", justify="right")
        table.add_column("UMass", justify="right")
    table.add_column(f"words by relevance (lambda {RELEVANCE_WEIGHT})", overflow="fold")
    for line in lines:
        scores = [] if not coherent else [_number(line.npmi, 2), _number(line.umass, 1)]
        table.add_row(str(line.topic), f"{line.weight:.1%}", *scores, " ".join(line.words))
    console.print(table)


def print_status(console: Console, status: Status) -> None:
    """Two columns of names and values."""
    outside = "unknown" if status.outside_share is None else f"{status.outside_share:.1%}"
    rows = [
        ("store", status.store),
        ("version", f"{status.version} of {status.time}: {status.message}"),
        ("documents", f"{status.documents:,} ({status.empty_documents:,} without a known word)"),
        ("effective documents", f"{status.effective_documents:,.1f}{_few(status)}"),
        ("tokens", f"{status.tokens:,} in the vocabulary, {outside} outside"),
        ("shards", f"{status.shards:,} in {status.segments} segments{_days(status)}"),
        ("vocabulary", f"{status.words:,} words, core {status.core:,}, {status.vocabulary[:12]}"),
        ("basis", f"{status.basis_columns} columns, {status.basis[:12]}{_captured(status)}"),
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


def as_json(value: Status | TopicLine | LogLine) -> dict[str, object]:
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


def _few(status: Status) -> str:
    if not status.documents or status.effective_documents >= 100:
        return ""
    return ": few, a handful of long documents rules the third moment; use --passage-words"


def _captured(status: Status) -> str:
    if status.captured is None:
        return ""
    return f", captured spectrum of the latest model {status.captured:.2f}"


def _days(status: Status) -> str:
    return "" if status.days is None else f", documents of {' to '.join(status.days)}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"

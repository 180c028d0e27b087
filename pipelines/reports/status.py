"""Status: a version of a store in numbers, with warnings if its topics may be poor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES
from streaming_moments.pipelines.quantities import local_time
from streaming_moments.pipelines.reports.outside_words import (
    advice_of,
    share_line,
    share_outside,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Spell, of_commands
from streaming_moments.statistics.counts.lengths.bounds import error_radius
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.storage.counting.tokenisers.compiled import NAME as COMPILED
from streaming_moments.storage.operations.growth import AddedWords, added_words
from streaming_moments.storage.operations.staleness import Staleness, staleness
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.drift.measure_drift import DriftSince

# the error of a moment exceeds the reported radius with at most this probability
ERROR_DELTA = 0.05
# `status` warns if the effective number of documents is smaller than this; with this number, the
# error radius of the third moment is 0.09. For example, 77 whole speeches (5 effective documents)
# gave poor topics, and the passages of these speeches (2,147 effective documents) gave good topics.
FEW_DOCUMENTS = 1000
_SHOWN = 3  # list at most this many names in a message
# A message advises passages of this many words, if some documents are longer.
_PASSAGE = 200
_TRIPLE = 3  # a document adds to the third moment if it has at least this many words


@dataclass(frozen=True)
class Status:
    """A version of a store in numbers.

    With probability `1 - error_delta` each, the errors of the second moment, M2, and of the third,
    M3, in the Frobenius norm are below their radius (Ruffini et al. 2018, Theorem 2). The radius of
    M2 needs a document of two words, that of M3 a document of three; otherwise it has the value
    None. `warning` explains why topics may be poor, with the remedy, or is empty.

    `stale_models` are the latest and tagged models that lack counted documents or still contain
    forgotten ones. `forgotten` are the shards that updates skip. `purged` is the number of shards
    that are recorded only by a keyed hash. `segments_read` is the number of segments that a refit
    reads; it is smaller than `segments` if compaction has replaced many by their sum. `advice` has
    the remedies if more than a few percent of the tokens are outside the vocabulary. `drift` is
    measured only on request, because it needs more than this version. `counted_at` is the time of
    the latest commit that changed the documents.
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
    captured: float | None
    days: tuple[str, str] | None
    shards: int
    segments: int
    segments_read: int
    words: int
    added_words: tuple[AddedWords, ...]
    core: int
    basis_columns: int
    row_blocks: int
    state_bytes: int
    counting: str
    models: tuple[str, ...]
    tags: Mapping[str, str]
    vocabulary: str
    basis: str
    warning: str
    stale_models: tuple[Staleness, ...] = ()
    forgotten: tuple[str, ...] = ()
    purged: int = 0
    advice: tuple[str, ...] = ()
    drift: DriftSince | None = None
    counted_at: str | None = None
    tokeniser: str | None = None


def status_of(store: MomentStore) -> Status:
    """Compute the status of a version of a store of documents."""
    histogram, commit, basis = store.length_histogram(), store.commit, store.basis
    empty = int(histogram.documents[histogram.lengths == 0].sum())
    outside = share_outside(store)
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
        outside_share=outside,
        captured=_captured(store),
        days=days_of(store),
        **shard_facts(store),
        words=basis.n_words,
        added_words=added_words(commit.lineage, basis.n_words),
        core=basis.core,
        basis_columns=basis.columns,
        **size_facts(store),
        counting=_counting(store),
        **kept_facts(store),
        vocabulary=basis.vocabulary,
        basis=basis.fingerprint,
        warning=few_documents(store, of_commands),
        advice=tuple(map(str, advice_of(store, outside))),
        counted_at=counted_at(store),
        tokeniser=None if store.policy is None else store.policy.tokeniser,
    )


# A fact that all kinds share is written in three places: one of the next functions computes it,
# another one makes its row in the table of `status`, and `Status` has a field for it.


def shard_facts(store: MomentStore) -> dict[str, Any]:
    """Shards and segments."""
    return {
        "shards": store.commit.shards,
        "segments": len(store.commit.segments),
        "segments_read": len(store.parts),
    }


def size_facts(store: MomentStore) -> dict[str, Any]:
    """Return the number of row blocks, and the bytes of the statistics."""
    return {"row_blocks": store.row_blocks, "state_bytes": store.layout.state_bytes}


def size_row(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Format the facts of `size_facts` for people."""
    size = f"{mebibytes(facts['state_bytes'])} in {of_number(facts['row_blocks'], 'row block')}"
    return "statistics", size


def version_row(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Format the version, its time and its message for people."""
    return "version", f"{facts['version']} of {local_time(facts['time'])}: {facts['message']}"


def shards_row(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Format the number of shards, and the days of their documents."""
    return "shards", f"{facts['shards']:,}{days_text(facts['days'])}"


def segments_row(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Format the number of segments, and how many of them a refit reads."""
    return "segments", f"{facts['segments']}; a refit reads {facts['segments_read']}"


def kept_facts(store: MomentStore) -> dict[str, Any]:
    """Return models, tags, and the shards that updates skip."""
    commit = store.commit
    return {
        "models": tuple(store.models),
        "tags": dict(commit.tags),
        "stale_models": stale_models(store),
        "forgotten": commit.forgotten.names,
        "purged": len(commit.forgotten.purged),
    }


def kept_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format the facts of `kept_facts` for people."""
    return [
        ("models", ", ".join(facts["models"]) or "none"),
        ("tags", ", ".join(f"{tag} is {name}" for tag, name in facts["tags"].items()) or "none"),
        *skipped_rows(facts["forgotten"], facts["purged"]),
    ]


def days_of(store: MomentStore) -> tuple[str, str] | None:
    """Return the first and last day of a version's documents, ISO 8601; None without days."""
    days = [part.dates for part in store.commit.segments if part.dates is not None]
    if not days:
        return None
    return min(one.first for one in days).isoformat(), max(one.last for one in days).isoformat()


def rows_of(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return rows of names and values: the counts of a store of documents, and its models."""
    outside = status["outside_share"]
    share = f" in the vocabulary, {outside:.1%} outside" if outside else ""
    empty = status["empty_documents"]
    unknown = f" ({empty:,} without a known word)" if empty else ""
    rows = [
        ("documents", f"{status['documents']:,}{unknown}"),
        ("tokens", f"{status['tokens']:,}{share}"),
        shards_row(status),
        ("vocabulary", _vocabulary_text(status["words"], status["tokeniser"])),
        *([("new words", _added_text(status["added_words"]))] if status["added_words"] else []),
        *kept_rows(status),
    ]
    if status["drift"] is not None:
        rows.append(("drift", _drift_text(status["drift"])))
    return rows


def _vocabulary_text(words: int, tokeniser: str | None) -> str:
    by = "" if tokeniser in (None, COMPILED) else f", found by tokeniser {tokeniser}"
    return f"{of_number(words, 'word')}{by}"


def details_of(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return rows of details: how exact the moments are, and how the counts are stored."""
    radii = (f"M{order} {_radius_text(status[f'error_radius_m{order}'])}" for order in (2, 3))
    return [
        version_row(status),
        ("effective documents", f"{status['effective_documents']:,.1f}"),
        (
            "error radius",
            f"{', '.join(radii)} (Theorem 2, each with probability "
            f"{1 - status['error_delta']:.0%}): the sampling error of the moments, smaller with "
            "more documents",
        ),
        segments_row(status),
        ("core words", f"{status['core']:,} of the vocabulary {status['vocabulary'][:12]}"),
        (
            "basis",
            f"{of_number(status['basis_columns'], 'column')}, {status['basis'][:12]}"
            f"{_captured_text(status['captured'])}",
        ),
        size_row(status),
        ("counting", status["counting"]),
    ]


def warnings_of(status: Mapping[str, Any]) -> list[str]:
    """Return reasons why topics of a store of documents may be poor, with remedies."""
    warnings = [status["warning"]] * bool(status["warning"])
    if status["advice"]:
        warnings += [share_line(status["outside_share"]), *status["advice"]]
    return warnings


def print_facts(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Print rows as a column of names beside a column of values."""
    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_warnings(console: Console, lines: Iterable[str]) -> None:
    """Print warnings about the shown numbers, a line each."""
    for line in lines:
        console.print(Text(f"warning: {line}", style="yellow"), soft_wrap=True)


def stale_models(store: MomentStore) -> tuple[Staleness, ...]:
    """Return the latest and the tagged models whose documents are not those counted now."""
    names = [*[*store.models][-1:], *store.commit.tags.values()]
    found = (staleness(store, name) for name in dict.fromkeys(names))
    return tuple(one for one in found if one.is_stale)


def stale_line(stale: Staleness) -> str:
    """Describe the documents that a model lacks or still contains; empty if it matches.

    Examples
    --------
    >>> stale_line(Staleness("may", 3, counted=1200, forgotten=20))
    'model may was fitted to version 3: 1,200 documents counted since then are not in it, \
20 forgotten since then still are in it; refit'
    >>> stale_line(Staleness("may", 3, counted=0, forgotten=20))
    'model may was fitted to version 3: 20 documents forgotten since then still are in it; refit'
    >>> stale_line(Staleness("may", 3, counted=1, forgotten=1))
    'model may was fitted to version 3: 1 document counted since then is not in it, \
1 forgotten since then still is in it; refit'
    >>> stale_line(Staleness("may", 3, counted=0, forgotten=0))
    ''
    """
    if not stale.is_stale:
        return ""
    told = f"model {stale.model} was fitted to version {stale.version}"
    if stale.counted is None or stale.forgotten is None:
        return f"{told}; some versions since then are deleted, so the difference is unknown"
    parts = []
    if stale.counted:
        what = (
            "document counted since then is"
            if stale.counted == 1
            else "documents counted since then are"
        )
        parts.append(f"{stale.counted:,} {what} not in it")
    if stale.forgotten:
        what = "document" if stale.forgotten == 1 else "documents"
        still = f"still {'is' if stale.forgotten == 1 else 'are'}"
        shown = (
            f"forgotten since then {still} in it"
            if parts
            else f"{what} forgotten since then {still} in it"
        )
        parts.append(f"{stale.forgotten:,} {shown}")
    return f"{told}: {', '.join(parts)}; refit"


def stale_as_json(stale: Staleness) -> dict[str, object]:
    """Return the version of a model, and the numbers of documents counted and forgotten since.

    A number is null if it is unknown.
    """
    return {
        "fitted_version": stale.version,
        "documents_counted_since": stale.counted,
        "documents_forgotten_since": stale.forgotten,
        "stale": stale.is_stale,
    }


def _counting(store: MomentStore) -> str:
    """Describe how the store weights documents and divides them into two halves.

    If new stores have other defaults for this, also name the command that changes the store.
    """
    if store.basis.table is not None:
        return f"rows of {store.basis.table.number} categorical columns"
    pooled = store.basis.weights.is_pooled
    in_turn = store.halves and not store.counts.halves_by_content
    kept = "with halves" if store.halves else "without halves, so no error bars"
    kept += ", between which documents alternate" * in_turn
    remedy = "rebase" + " --length-weights even" * pooled + " --halves" * (not store.halves)
    new = f"; new stores have other defaults: `{remedy}`" if in_turn or " " in remedy else ""
    return f"{store.basis.weights.sentence}; {kept}{new}"


def _captured(store: MomentStore) -> float | None:
    return store.load_any_model().captured_share if store.models else None


def _radius(histogram: LengthHistogram, order: int) -> float | None:
    return error_radius(histogram, ERROR_DELTA, order) if histogram.longest >= order else None


def _radius_text(radius: float | None) -> str:
    return "unknown" if radius is None else f"{radius:.2g}"


def spelled(status: Status, store: MomentStore, spell: Spell) -> Status:
    """Return the status with remedies for users of commands, of Python or of the nightly run.

    `spell` writes the commands and options.
    """
    advice = tuple(one.said(spell) for one in advice_of(store, status.outside_share))
    return replace(status, warning=few_documents(store, spell), advice=advice)


def few_documents(store: MomentStore, spell: Spell) -> str:
    """Return a warning if there are so few effective documents that topics are poor, or ""."""
    histogram, policy = store.length_histogram(), store.policy
    effective = histogram.effective_documents
    if not histogram.n_documents or effective >= FEW_DOCUMENTS:
        return ""
    if not effective:
        return (
            "no document has three words of the vocabulary, which topics need; count longer "
            "documents, or create a store with a larger vocabulary"
        )
    cut = spell("create", "passage_words", str(_PASSAGE))
    found = f"{effective:,.1f} effective documents are few, below {FEW_DOCUMENTS:,}"
    number, is_long = histogram.n_documents, histogram.longest > _PASSAGE
    used = int(histogram.documents[histogram.lengths >= _TRIPLE].sum())
    if used < min(number / 2, FEW_DOCUMENTS):
        has = "has" if used == 1 else "have"
        return (
            f"{found}, because most of the {number:,} documents are short ({used:,} {has} three "
            "words of the vocabulary, which topics need); count more or longer documents"
        )
    if policy is None:
        remedy = "count more documents"
        remedy += ", or token ids of passages instead of whole documents" if is_long else ""
    elif policy.passage_words is not None:
        remedy = "count more documents (they are cut into passages already)"
    elif effective < number / 2:
        remedy = "count more documents of their length"
        if histogram.is_pooled:
            remedy = f"lower their weight with {spell('rebase', 'length_weights', 'even')}"
        elif is_long:
            remedy = f"create a new store with {cut}"
        return (
            f"{found}, because a few long ones among {number:,} dominate the third moment; {remedy}"
        )
    else:
        remedy = "count more documents"
        remedy += f", or cut long ones by a new store with {cut}" if is_long else ""
    return f"{found}, so topics from them are rough; {remedy}"


def _captured_text(captured: float | None) -> str:
    if captured is None:
        return ""
    return (
        f", captured spectrum of the latest model {captured:.2f} (the part of its "
        "weakest topic that the basis captures; near 1 is good)"
    )


def _drift_text(since: DriftSince) -> str:
    shares = [(one.text, getattr(since.drift, one.key)) for one in DRIFT_MEASURES if one.text]
    told = ", ".join(f"{name} {'unknown' if x is None else f'{x:.3f}'}" for name, x in shares)
    return f"since {since.model} of version {since.version}: {told}"


def _added_text(added: Iterable[AddedWords]) -> str:
    parts = (f"{of_number(part.words, 'word')} since {since_text(part)}" for part in added)
    return ", ".join(parts)


def since_text(added: AddedWords) -> str:
    """Return the version that added some words; documents counted since then include them.

    Examples
    --------
    >>> since_text(AddedWords(first=900, words=40, version=12, time="2026-11-20T03:00:00+00:00"))
    'version 12 (2026-11-20)'
    """
    return f"version {added.version} ({added.time[:10]})"


def skipped_rows(forgotten: Sequence[str], purged: int) -> list[tuple[str, str]]:
    """Describe the forgotten and purged shards that updates skip, if any.

    Examples
    --------
    >>> skipped_rows(["a.txt", "b.txt"], 1)
    [('skipped', 'by updates: 2 forgotten shards (a.txt, b.txt), 1 purged')]
    """
    if not forgotten and not purged:
        return []
    named = ", ".join(forgotten[:_SHOWN])
    more = f" and {len(forgotten) - _SHOWN:,} more" if len(forgotten) > _SHOWN else ""
    count = of_number(len(forgotten), "forgotten shard")
    parts = [f"{count} ({named}{more})"] if forgotten else []
    parts += [f"{purged:,} purged"] if purged else []
    return [("skipped", f"by updates: {', '.join(parts)}")]


def days_text(days: tuple[str, str] | None) -> str:
    """Format the first and last day for the end of a text about shards; empty without days."""
    return "" if days is None else f", documents of {' to '.join(days)}"


def counted_at(store: MomentStore) -> str | None:
    """Return the ISO 8601 time of the latest commit that counted or forgot documents.

    Returns None without documents, or if that commit has expired.
    """
    now, behind = store.commit, 1
    while now.documents and behind // 8 <= store.version:
        commits = store.log(max(0, store.version - behind))
        for after, before in pairwise(commits):
            if (before.documents, before.tokens) != (now.documents, now.tokens):
                return after.time
        behind *= 8
    return None

"""Create a store: vocabulary and basis from a pilot sample of the shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import option
from streaming_moments.pipelines.cluster.memory import (
    ReadingPlan,
    mebibytes,
    pilot_room,
    plan_reading,
)
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.quantities import Count, Number, PositiveShare, Seed
from streaming_moments.statistics.counts.basis import DEFAULT_CORE, Basis
from streaming_moments.statistics.counts.lengths.room import documents_that_fit
from streaming_moments.statistics.counts.lengths.weights import WEIGHTINGS, Weighting
from streaming_moments.statistics.counts.tables.columns import (
    BETWEEN,
    CATEGORIES,
    FEWEST_COLUMNS,
    TableColumns,
    require_countable,
)
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, Vocabulary, select_terms
from streaming_moments.storage.counting.samples import (
    TermSample,
    merge_samples,
    recount,
    sample_shard,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.formats import FORMATS, ReadLimits
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore

# A pilot reads whole shards: so many, spread over the corpus, bound its cost.
PILOT_SHARDS = 64


@dataclass(frozen=True)
class CountingOptions:
    """What a document is, and what is counted of it; each field says what it is in its help."""

    format: str | None = option("Format [by suffix].", None, ShardFormat, choices=tuple(FORMATS))
    text_column: str = option("Column or JSON field.", "text")
    ids_column: str | None = option("Column of token id lists, instead of text.", None)
    counts_column: str | None = option("Column of the counts of the token ids.", None)
    categories: tuple[str, ...] = option(
        "Categorical column of a table, instead of text; repeatable, or several with commas.",
        (),
        metavar="NAME",
    )
    languages: tuple[str, ...] = option(
        "Stop words of; repeatable.", (), TokenPolicy.for_languages, flag="--language"
    )
    stop_words: tuple[str, ...] = option("One more stop word; repeatable.", (), flag="--stop-word")
    min_length: Count = option("Shortest term, in characters.", 2)
    passage_words: Count | None = option("Cut documents into passages of so many words.", None)
    date_column: str | None = option("Column or JSON field of dates.", None, metavar="NAME")
    date_pattern: str | None = option(
        'Date in the URL of a shard, such as "%Y%m%d", or "none" [ISO dates].',
        None,
        lambda pattern: DateSource(pattern=pattern),
        metavar="PATTERN",
    )
    codocuments: bool = option("Keep counts for coherence.", True)
    halves: bool = option("Keep half of the documents apart, for error bars.", True)

    @property
    def form(self) -> ShardFormat:
        """How documents lie in shards."""
        columns = tuple(name.strip() for given in self.categories for name in given.split(","))
        return ShardFormat(
            self.format, self.text_column, self.ids_column, self.counts_column, columns
        )

    @property
    def policy(self) -> TokenPolicy:
        """What makes a text into tokens."""
        return TokenPolicy.for_languages(
            self.languages, self.min_length, self.passage_words, self.stop_words
        )

    @property
    def dates(self) -> DateSource:
        """Where the days of documents are."""
        return DateSource(self.date_column, self.date_pattern)


@dataclass(frozen=True)
class PilotOptions:
    """How vocabulary and basis are made from a pilot; each field says what it is in its help."""

    vocabulary_size: Count = option("Terms at most.", 10_000)
    core: Count = option("Core words at most.", DEFAULT_CORE)
    max_topics: Count = option("Topics the sketch serves.", 32)
    min_documents: Number = option("A term's passages, least.", 5)
    max_document_fraction: PositiveShare = option("A term's share of them, most.", 0.5)
    pilot_documents: Count = option("Passages to sample.", 20_000)
    length_weights: Weighting = option(
        "Whether long documents count fewer times than short ones.", "even", choices=WEIGHTINGS
    )
    seed: Seed = option("Of the sample and the basis.", 0)


@dataclass(frozen=True, eq=False)
class Pilot:
    """The result of a pilot sample.

    vocabulary : its terms by falling frequency
    basis : Q from the same passages
    documents, shards : passages sampled, and the shards they are from
    room : documents like these that the store can hold
    rare : categories of a table that are too rare to be counted
    """

    vocabulary: Vocabulary
    basis: Basis
    documents: int
    shards: int = 0
    room: int = 0
    rare: int = 0

    @property
    def origin(self) -> str:
        """Where it comes from, and how documents count, in words."""
        if self.basis.table is not None:
            rare = f"; {self.rare} that are rarer count as missing" if self.rare else ""
            return (
                f"a pilot of {self.documents} rows in {self.shards} shards: "
                f"{self.basis.table.n_words} categories of {self.basis.table.number} columns{rare}"
            )
        return (
            f"a pilot of {self.documents} passages in {self.shards} shards; "
            f"{self.basis.weights.sentence}; room for about {self.room:.2g} documents like these"
        )


def create(
    url: str,
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
    codocuments: bool = True,
    dates: DateSource = DateSource(),
    halves: bool = True,
) -> MomentStore:
    """Make an empty store whose vocabulary and basis fit the shards.

    Parameters
    ----------
    url : str
        fsspec URL of the store, which must not exist.
    shards : sequence of Shard
        Some of the corpus, as `list_shards` gives them; they are sampled, not counted.
    form, policy : ShardFormat, TokenPolicy or None
        How they are read, kept in the store; None for shards of token ids.
    options : PilotOptions
        Sizes and bounds.
    run : Run
        Where to run, and what its steps are told.
    codocuments : bool
        Whether to gather the counts from which coherence follows.
    dates : DateSource
        Where the days of documents are, kept in the store.
    halves : bool
        Whether to keep half of the documents apart, for error bars and what is held out.

    Raises
    ------
    StoreError
        The store exists, or cannot be written.
    ShardError
        A sampled shard cannot be read.
    InvalidInput
        No term or no pair of words is left.
    BoundExceeded
        The memory budget cannot hold a read task.
    """
    require_absent(Folder.at(url, run.storage_options))
    pilot = draw_pilot(shards, form, policy, options, run)
    return MomentStore.create(
        url,
        pilot.vocabulary,
        policy,
        pilot.basis,
        form,
        codocuments=codocuments,
        message=f"create from {pilot.origin}",
        storage_options=run.storage_options,
        dates=dates,
        pilot=asdict(options),
        halves=halves,
    )


def draw_pilot(
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
) -> Pilot:
    """Sample shards on the cluster, and choose vocabulary and basis; arguments as of `create`.

    Raises InvalidInput if no term or no pair of words is left.
    """
    samples = sample_pilot(shards, form, policy, options, run)
    return replace(choose(samples, policy, options), shards=len(samples))


def sample_pilot(
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
) -> list[TermSample]:
    """Draw passages of at most `PILOT_SHARDS` shards on the cluster; arguments as of `create`."""
    return draw_samples(sample_shard, shards, form, policy, options, run)


def draw_samples(
    read: Callable[..., Any],
    shards: Sequence[Shard],
    form: ShardFormat,
    what: Any,
    options: PilotOptions,
    run: Run,
) -> list[Any]:
    """What `read` draws of each shard of a pilot, on the cluster; `what` says what is read of it.

    Other arguments as of `create`.
    """
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = pilot_limits(run.limits, plan, run.cluster.memory)
    calls = [
        (shard, form, what, quota, options.seed + place, own, run.storage_options)
        for place, (shard, quota) in enumerate(quotas(shards, options))
        for own in [of_share(limits, quota, options)]
    ]
    return run.calls("sampling shards", read, calls, plan.in_flight)


def choose(
    samples: Sequence[TermSample], policy: TokenPolicy | None, options: PilotOptions
) -> Pilot:
    """Choose vocabulary and basis from the samples of all pilot shards.

    InvalidInput if no term is left, or no document holds two of them.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> sample = TermSample(("law", "sea"), CountBatch.from_csr([[2, 1], [1, 1]]), 2)
    >>> choose([sample], None, PilotOptions(min_documents=1, max_document_fraction=1, max_topics=1)
    ... ).vocabulary.terms
    ('law', 'sea')
    """
    sample = merge_samples(samples)
    if sample.columns:
        return _choose_categories(sample, options)
    chosen = select_terms(
        frequencies_of(sample),
        options.vocabulary_size,
        options.min_documents,
        options.max_document_fraction,
    )
    token_ids = sample.token_ids
    vocabulary = Vocabulary(
        tuple(sample.terms[i] for i in chosen),
        core=min(options.core, chosen.size),
        policy=policy.fingerprint if policy else "",
        token_ids=None if token_ids is None else tuple(token_ids[i] for i in chosen),
    )
    counted = recount(sample, vocabulary)
    basis = Basis.from_pilot(
        counted, options.max_topics, options.seed, vocabulary.core, options.length_weights
    )
    room = documents_that_fit(counted, basis.matrix, basis.weights)
    return Pilot(vocabulary, basis, sample.batch.documents, room=room)


def _choose_categories(sample: TermSample, options: PilotOptions) -> Pilot:
    """All categories of a table that are frequent enough, column by column, and the identity."""
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in sample.columns}
    frequencies = frequencies_of(sample).document_frequencies.tolist()
    for term, rows in zip(sample.terms, frequencies, strict=True):
        found[term.partition(BETWEEN)[0]].append((term, rows))
    if len(found) < FEWEST_COLUMNS:
        raise InvalidInput(
            f"the table has {len(found)} categorical columns ({', '.join(found)}); what is hidden "
            f"behind columns shows from {FEWEST_COLUMNS} on: name more by --categories"
        )
    # before rare ones go: a column of names has nothing but rare ones
    require_countable(found, [len(own) for own in found.values()])
    kept = {
        name: [term for term, rows in own if rows >= options.min_documents]
        for name, own in found.items()
    }
    for name, terms in kept.items():
        if len(terms) < 2:
            raise InvalidInput(
                f"column {name!r} has {len(terms)} categories in {options.min_documents} rows or "
                f"more of the {sample.batch.documents} sampled; leave it out, or lower "
                "--min-documents"
            )
    table = TableColumns.of_terms(term for own in kept.values() for term in own)
    vocabulary = Vocabulary(table.terms, table.n_words, CATEGORIES)
    basis = Basis.of_table(table, vocabulary.fingerprint)
    room = documents_that_fit(recount(sample, vocabulary), basis.matrix, basis.weights)
    rare = len(sample.terms) - table.n_words
    return Pilot(vocabulary, basis, sample.batch.documents, room=room, rare=rare)


def frequencies_of(sample: TermSample) -> TermFrequencies:
    """How often, and in how many passages, each term of a sample occurs."""
    matrix = sample.batch.to_csr()
    return TermFrequencies(
        sample.terms,
        np.asarray(matrix.sum(axis=0), dtype=np.int64).ravel(),
        np.bincount(sample.batch.words, minlength=len(sample.terms)).astype(np.int64),
        sample.batch.documents,
    )


def pilot_limits(limits: ReadLimits, plan: ReadingPlan, memory: int) -> ReadLimits:
    """Bounds of reading, and of the whole pilot, that follow from a budget of memory."""
    return replace(
        limits,
        batch_bytes=plan.batch_bytes,
        row_group_bytes=plan.row_group_bytes,
        pilot_bytes=pilot_room(memory),
    )


def of_share(limits: ReadLimits, quota: int, options: PilotOptions) -> ReadLimits:
    """Bounds of a shard that has so many documents of the pilot."""
    share = limits.pilot_bytes * quota // options.pilot_documents
    return replace(limits, pilot_bytes=max(1, share))


def cut_to_room(held: int, limits: ReadLimits) -> str:
    """Words on a pilot that is as large as its memory allows, none on another."""
    if held <= limits.pilot_bytes // 2:
        return ""
    return f" (no more fit in {mebibytes(limits.pilot_bytes)}: raise --memory for a larger pilot)"


def quotas(shards: Sequence[Shard], options: PilotOptions) -> list[tuple[Shard, int]]:
    """Choose pilot shards with their numbers of passages, in proportion to their bytes.

    InvalidInput without shards or passages, or with a seed below 0.
    """
    if not shards:
        raise InvalidInput("no shards to sample; give at least one")
    if options.seed < 0:
        raise InvalidInput(f"the seed is {options.seed}; it must be at least 0")
    if options.pilot_documents < 1:
        raise InvalidInput(f"a pilot of {options.pilot_documents} passages; it must be at least 1")
    rng = np.random.default_rng(options.seed)
    taken = np.sort(rng.permutation(len(shards))[:PILOT_SHARDS])
    chosen = [shards[i] for i in taken]
    total = sum(shard.size for shard in chosen) or 1
    return [(shard, max(1, -(-options.pilot_documents * shard.size // total))) for shard in chosen]

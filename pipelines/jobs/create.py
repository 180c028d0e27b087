"""Create a store: vocabulary and basis from a pilot sample of the shards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.memory import (
    ReadingPlan,
    mebibytes,
    pilot_room,
    plan_reading,
)
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import MOST_TIMES as MOST_TIMES
from streaming_moments.pipelines.counting_options import MOST_TOPICS
from streaming_moments.pipelines.counting_options import (
    PILOT_DOCUMENTS as PILOT_DOCUMENTS,
)
from streaming_moments.pipelines.counting_options import (
    CountingOptions as CountingOptions,
)
from streaming_moments.pipelines.counting_options import PilotOptions as PilotOptions
from streaming_moments.pipelines.quantities import about
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import remedy
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.room import documents_that_fit
from streaming_moments.statistics.counts.tables.columns import (
    BETWEEN,
    CATEGORIES,
    FEWEST_COLUMNS,
    TableColumns,
    require_countable,
)
from streaming_moments.statistics.counts.vocabulary import (
    Vocabulary,
    select_terms,
    shares_left_out,
)
from streaming_moments.storage.counting.languages import tokeniser_advice
from streaming_moments.storage.counting.samples import (
    TermSample,
    frequencies_of,
    merge_samples,
    recount,
    sample_shard,
    settled,
    words_told,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore

# The first sample of a pilot comes from at most this many shards, spread over the corpus. This
# bounds its cost, because it reads whole shards.
PILOT_SHARDS = 64
# Most entries of a pilot: each passage has an entry for each of its different words. With all
# derived arrays and the process, a pilot of this size took 744 MiB when measured.
MOST_ENTRIES = 4_000_000
_UNMET_TIMES = 4.0  # if a sample has too few words, the next one is this many times as large
# Draw another sample only if it is at least this many times as large as the last one.
_WORTH = 1.1
CHOSEN = "--pilot-documents sets this number"


@dataclass(frozen=True, eq=False)
class Pilot:
    """Result of a pilot sample.

    vocabulary : terms of the sample by decreasing frequency
    basis : matrix Q from the same passages
    documents, shards : number of sampled passages, and of their shards
    room : number of documents like these that the store can hold
    rare : number of categories of a table that are too rare to count
    outside : shares of the sampled tokens outside the vocabulary, by reason
    stopped : why no further passages were sampled
    policy : how the sampled texts became tokens, with the languages that were found
    sought : whether languages were looked for
    told : further findings about the words of the sample, see `words_told`
    topics : number of topics for which the basis of documents is made, if no option sets it
    """

    vocabulary: Vocabulary
    basis: Basis
    documents: int
    shards: int = 0
    room: int = 0
    rare: int = 0
    outside: Mapping[str, float] = field(default_factory=dict)
    stopped: str = ""
    policy: TokenPolicy | None = None
    sought: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)
    topics: int | None = None

    @property
    def drawn(self) -> dict[str, Any]:
        """Describe the sample, why it ended, and which share of it is outside the vocabulary."""
        return {
            "passages": self.documents,
            "shards": self.shards,
            "stopped": self.stopped,
            **self.outside,
            **({"languages": [*self.policy.languages]} if self.policy and self.sought else {}),
            **self.told,
            **({} if self.topics is None else {"max_topics": self.topics}),
        }

    @property
    def origin(self) -> str:
        """Describe the origin of the vocabulary and the weights of documents."""
        if self.basis.table is not None:
            rare = f"; {self.rare} rarer ones count as missing" if self.rare else ""
            return (
                f"a sample of {self.documents:,} rows in {of_number(self.shards, 'shard')}: "
                f"{self.basis.table.n_words} categories of {self.basis.table.number} columns{rare}"
            )
        return (
            f"a sample of {self.documents:,} passages in {of_number(self.shards, 'shard')}"
            f"{f' ({self.stopped})' if self.stopped else ''}; "
            f"{self.basis.weights.sentence}; capacity: {about(self.room)} such documents"
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
    """Create an empty store with a vocabulary and a basis that fit the shards.

    Parameters
    ----------
    url : str
        fsspec URL of the store, which must not exist.
    shards : sequence of Shard
        Shards of the corpus from `list_shards`; they are sampled, not counted.
    form, policy : ShardFormat, TokenPolicy or None
        How shards are read, and how texts become tokens; the store records both. Give no policy for
        shards of token ids. A policy for the languages `["auto"]` gets the stop words of the
        languages that the sample shows.
    options : PilotOptions
        Sizes and bounds.
    run : Run
        Cluster and options.
    codocuments : bool
        Whether to store the counts for coherence.
    dates : DateSource
        Where the days of documents are; the store records it.
    halves : bool
        Whether to count one half of the documents separately, for error bars and held-out scores.

    Raises
    ------
    StoreError
        The store exists, or cannot be written.
    ShardError
        A sampled shard cannot be read.
    InvalidInput
        The vocabulary would be empty, or without any pair of words.
    BoundExceeded
        A read task does not fit into the memory budget.
    """
    require_absent(Folder.at(url, run.storage_options))
    pilot = draw_pilot(shards, form, policy, options, run)
    return MomentStore.create(
        url,
        pilot.vocabulary,
        pilot.policy,
        pilot.basis,
        form,
        codocuments=codocuments,
        message=f"create from {pilot.origin}",
        storage_options=run.storage_options,
        dates=dates,
        pilot=asdict(options) | {"drawn": pilot.drawn},
        halves=halves,
    )


def draw_pilot(
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
) -> Pilot:
    """Sample shards on the cluster, and choose vocabulary and basis; arguments as in `create`.

    Raises InvalidInput if the vocabulary would be empty, or without any pair of words.
    """
    drawn = draw_words(shards, form, policy, options, run)
    told = words_told(drawn.sample, drawn.policy)
    try:
        pilot = choose([drawn.sample], drawn.policy, options)
    except InvalidInput as error:
        if "better_tokeniser" not in told:
            raise
        # advise another tokeniser: one that does not suit the language makes words of whole
        # sentences, which are all rare
        advice = tokeniser_advice(told["better_tokeniser"])
        said = remedy("{advice}. As is, {error}", advice=advice, error=error)
        raise InvalidInput(said) from None
    sought = policy is not None and policy.seeks_languages
    return replace(
        pilot,
        shards=drawn.shards,
        stopped=drawn.stopped,
        policy=drawn.policy,
        sought=sought,
        told=told,
    )


@dataclass(frozen=True, eq=False)
class Drawn:
    """Passages of a pilot, the number of their shards, and why no more passages were sampled.

    policy : how the passages became tokens, with the languages that were found
    """

    sample: TermSample
    shards: int
    stopped: str
    policy: TokenPolicy | None = None


def draw_words(
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
) -> Drawn:
    """Sample passages on the cluster until they have enough words, or a bound is reached.

    A larger sample is drawn from the start again, so that all passages have the same chance to be
    in it. Arguments as in `create`.
    """
    most, asked = min(PILOT_SHARDS, len(shards)), options.pilot_documents
    while True:
        begun = time.monotonic()
        size = replace(options, pilot_documents=asked)
        samples = sample_pilot(shards, form, policy, size, run, most)
        sample, cut = merge_samples(samples), _is_cut(samples, quotas(shards, size, most))
        chosen = policy
        if policy is not None:
            sample, chosen = settled(sample, policy, options.min_documents)
            # in a larger sample, look for phrases again
            sought = policy.phrases, policy.phrase_words
            policy = replace(chosen, phrases=sought[0], phrase_words=sought[1])
        following = next_draw(sample, options, asked, (most, len(shards)), cut)
        if isinstance(following, str):
            return Drawn(sample, len(samples), following, chosen)
        asked, most = following
        run.tell(
            f"a sample of {sample.batch.documents:,} passages has fewer than "
            f"{options.vocabulary_size:,} words; drawing up to {asked:,} passages from {most:,} "
            f"shards, which takes about "
            f"{(time.monotonic() - begun) * max(1, most // len(samples)):.0f} s"
        )
        del samples, sample  # free the small arrays before making larger ones


def next_draw(
    sample: TermSample,
    options: PilotOptions,
    asked: int,
    shards: tuple[int, int],
    cut: bool = False,
) -> tuple[int, int] | str:
    """Return the numbers of passages and shards of the next sample, or why sampling ends.

    `asked` passages were requested. `shards` are the numbers of shards read and of all shards.
    `cut` means that memory was too small for these passages.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> sample = TermSample(("law", "sea"), CountBatch.from_csr([[2, 1], [1, 0]]), 9)
    >>> next_draw(sample, PilotOptions(), 20_000, (1, 1))
    (80000, 1)
    >>> next_draw(sample, PilotOptions(pilot_documents=2), 2, (1, 1))
    '--pilot-documents sets this number'
    """
    if sample.columns:
        return ""  # one sample is enough for a table, which counts all frequent categories
    (read, there), documents = shards, sample.batch.documents
    size, least = options.vocabulary_size, max(options.min_documents, 1)
    found = frequencies_of(sample).document_frequencies
    found = np.sort(found[found <= options.max_document_fraction * documents])[::-1]
    if np.count_nonzero(found >= least) >= size:
        return f"it has all {size:,} words of --vocabulary-size"
    whole = sample.documents_seen <= documents
    if whole and read == there:
        return "there are no more passages"
    # a number other than the default is the choice of the user
    if options.pilot_documents != PILOT_DOCUMENTS:
        return CHOSEN
    if cut:
        return "--memory holds no more passages"
    if not np.count_nonzero(found < max(least, 2)):
        return "no rarer words appeared, so more passages would add none"
    # Enlarge the sample until the rarest requested word is frequent enough. If there are fewer
    # words than requested, its frequency is unknown, so use a fixed factor.
    rarest = int(found[size - 1]) if found.size >= size else 0
    times = max(2.0, (least + 1) / rarest) if rarest else _UNMET_TIMES
    if whole:
        more = min(there, MOST_TIMES * PILOT_SHARDS, int(read * times))
        return (asked, more) if more > read else f"{read:,} shards are the most for a sample"
    bound = MOST_TIMES * PILOT_DOCUMENTS
    room = MOST_ENTRIES * documents // max(1, sample.batch.words.size)
    more = min(bound, room, int(asked * times))
    if more >= _WORTH * asked:
        return more, read
    if bound <= room:
        return f"{bound:,} passages are the most for a sample"
    return f"{MOST_ENTRIES:,} words in passages are the most for a sample"


def _is_cut(samples: Sequence[TermSample], drawn: Sequence[tuple[Shard, int]]) -> bool:
    """Whether memory was too small for some requested passages."""
    return any(
        sample.batch.documents < min(quota, sample.documents_seen)
        for sample, (_, quota) in zip(samples, drawn, strict=True)
    )


def sample_pilot(
    shards: Sequence[Shard],
    form: ShardFormat,
    policy: TokenPolicy | None,
    options: PilotOptions,
    run: Run,
    most: int = PILOT_SHARDS,
) -> list[TermSample]:
    """Sample passages of at most `most` shards on the cluster; arguments as in `create`."""
    return draw_samples(sample_shard, shards, form, policy, options, run, most)


def draw_samples(
    read: Callable[..., Any],
    shards: Sequence[Shard],
    form: ShardFormat,
    what: Any,
    options: PilotOptions,
    run: Run,
    most: int = PILOT_SHARDS,
) -> list[Any]:
    """Call `read` for each of at most `most` shards of a pilot, on the cluster.

    `what` is the third argument of `read`, such as a policy. Other arguments as in `create`.
    """
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = pilot_limits(run.limits, plan, run.cluster.memory)
    calls = [
        (shard, form, what, quota, options.seed + place, own, run.storage_options)
        for place, (shard, quota) in enumerate(quotas(shards, options, most))
        for own in [of_share(limits, quota, options)]
    ]
    return run.calls("sampling shards", read, calls, plan.in_flight)


def choose(
    samples: Sequence[TermSample], policy: TokenPolicy | None, options: PilotOptions
) -> Pilot:
    """Choose vocabulary and basis from the samples of all pilot shards.

    Raises InvalidInput if the vocabulary would be empty, or no document has two of its words.

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
    frequencies = frequencies_of(sample)
    rarest, commonest = options.min_documents, options.max_document_fraction
    chosen = select_terms(frequencies, options.vocabulary_size, rarest, commonest)
    token_ids = sample.token_ids
    vocabulary = Vocabulary(
        tuple(sample.terms[i] for i in chosen),
        core=min(options.core, chosen.size),
        policy=policy.fingerprint if policy else "",
        token_ids=None if token_ids is None else tuple(token_ids[i] for i in chosen),
    )
    counted = recount(sample, vocabulary)
    topics = min(MOST_TOPICS, vocabulary.core) if options.max_topics is None else None
    basis = Basis.from_pilot(
        counted,
        options.max_topics or topics or MOST_TOPICS,
        options.seed,
        vocabulary.core,
        options.length_weights,
    )
    room = documents_that_fit(counted, basis.matrix, basis.weights)
    outside = shares_left_out(frequencies, chosen, rarest, commonest)
    documents = sample.batch.documents
    return Pilot(vocabulary, basis, documents, room=room, outside=outside, topics=topics)


def _choose_categories(sample: TermSample, options: PilotOptions) -> Pilot:
    """Choose all frequent categories of a table, column by column, with the identity as basis."""
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in sample.columns}
    frequencies = frequencies_of(sample).document_frequencies.tolist()
    for term, rows in zip(sample.terms, frequencies, strict=True):
        found[term.partition(BETWEEN)[0]].append((term, rows))
    if len(found) < FEWEST_COLUMNS:
        raise InvalidInput(
            f"the table has {of_number(len(found), 'categorical column')} ({', '.join(found)}), "
            f"but models need at least {FEWEST_COLUMNS}",
            "name more with {create.categories}",
        )
    # Check this before rare categories are dropped, because a column of names has only rare ones.
    require_countable(found, [len(own) for own in found.values()])
    kept = {
        name: [term for term, rows in own if rows >= options.min_documents]
        for name, own in found.items()
    }
    for name, terms in kept.items():
        if len(terms) < 2:
            raise InvalidInput(
                f"column {name!r} has {len(terms)} {'category' if terms else 'categories'} with "
                f"{of_number(options.min_documents, 'row')} or more among the "
                f"{sample.batch.documents} sampled rows",
                "leave it out, or lower {create.min_documents}",
            )
    table = TableColumns.of_terms(term for own in kept.values() for term in own)
    vocabulary = Vocabulary(table.terms, table.n_words, CATEGORIES)
    basis = Basis.of_table(table, vocabulary.fingerprint)
    room = documents_that_fit(recount(sample, vocabulary), basis.matrix, basis.weights)
    rare = len(sample.terms) - table.n_words
    return Pilot(vocabulary, basis, sample.batch.documents, room=room, rare=rare)


def pilot_limits(limits: ReadLimits, plan: ReadingPlan, memory: int) -> ReadLimits:
    """Return limits of reading that fit a memory budget, with a limit for the whole pilot."""
    return replace(
        limits,
        batch_bytes=plan.batch_bytes,
        row_group_bytes=plan.row_group_bytes,
        pilot_bytes=pilot_room(memory),
    )


def of_share(limits: ReadLimits, quota: int, options: PilotOptions) -> ReadLimits:
    """Return the limits of reading a shard from which `quota` documents are sampled."""
    share = limits.pilot_bytes * quota // options.pilot_documents
    return replace(limits, pilot_bytes=max(1, share))


def cut_to_room(held: int, limits: ReadLimits) -> str:
    """Return a note if memory bounds the pilot, otherwise an empty text."""
    if held <= limits.pilot_bytes // 2:
        return ""
    return f" (no more fit in {mebibytes(limits.pilot_bytes)}: raise --memory for a larger pilot)"


def quotas(
    shards: Sequence[Shard], options: PilotOptions, most: int = PILOT_SHARDS
) -> list[tuple[Shard, int]]:
    """Choose at most `most` shards, and for each a number of passages in proportion to its bytes.

    Raises InvalidInput without shards or passages, or for a seed below 0.
    """
    if not shards:
        raise InvalidInput("there are no shards to sample; give at least one")
    if options.seed < 0:
        raise InvalidInput(f"the seed is {options.seed}; give at least 0")
    if options.pilot_documents < 1:
        raise InvalidInput(f"pilot_documents is {options.pilot_documents}; give at least 1")
    rng = np.random.default_rng(options.seed)
    taken = np.sort(rng.permutation(len(shards))[:most])
    chosen = [shards[i] for i in taken]
    total = sum(shard.size for shard in chosen) or 1
    return [(shard, max(1, -(-options.pilot_documents * shard.size // total))) for shard in chosen]

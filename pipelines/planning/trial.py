"""Trial: read and count a few megabytes of the shards, and measure the time."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import Dirichlet
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.fit import fit
from streaming_moments.models.refinement import (
    STEP,
    PairTopics,
    begun,
    expected_ratios,
    next_topics,
    pair_rows,
)
from streaming_moments.models.sweeps import TopicRows, sweep
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.packing import packed_size
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.memory import BATCH_BYTES, LIMITS
from streaming_moments.pipelines.counting_options import (
    MOST_TIMES,
    MOST_TOPICS,
    PILOT_DOCUMENTS,
    PilotOptions,
)
from streaming_moments.pipelines.jobs.create import Pilot, choose
from streaming_moments.pipelines.planning.job import CorpusSize, Job
from streaming_moments.pipelines.planning.step_costs import (
    BlockCosts,
    PilotCosts,
    ReadCosts,
    StepCosts,
)
from streaming_moments.pipelines.planning.stopwatch import timed, timed_on_all
from streaming_moments.pipelines.planning.timed_rows import Timed
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.lengths.weights import POOLED
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.whitening import Whitening
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.samples import (
    TermSample,
    merge_samples,
    sample_shard,
    settled,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import share_before
from streaming_moments.storage.files.arrays import StoredGroup, encode_metadata
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.manifests import FileRecord, read_files
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.corpora import lda_corpus

# Each thread reads this many batches, enough to measure the time precisely.
_PIECES_PER_THREAD = 2
_WARM_BYTES = 64 << 10
_LANGUAGE_PASSAGES = 2_000
_ALPHA0, _METHOD = 0.1, "joint"
_HASHED_BYTES = 8 << 20
_REPEATS = 3


@dataclass(frozen=True)
class Reading:
    """How shards are read, as in `create`."""

    form: ShardFormat
    policy: TokenPolicy | None
    storage_options: Mapping[str, object] | None = None


@dataclass(frozen=True, eq=False)
class _Piece:
    """Part of a shard that one thread has read, and the seconds that this took."""

    batch: Any
    seconds: float
    nbytes: float


def try_out(
    shards: Sequence[Shard],
    reading: Reading,
    options: PilotOptions,
    n_topics: int | None,
    threads: int,
    codocuments: bool = True,
    halves: bool = True,
) -> tuple[Job, StepCosts]:
    """Run every step of create, update and refit on a small part of the corpus, and time it.

    Reads and counts some batches of shards that are spread over the corpus. On each thread, adds up
    one row block, writes it to a temporary folder, reads it back and runs the steps of a fit.

    Parameters
    ----------
    shards : sequence of Shard
        Shards of the corpus, from `list_shards`.
    reading : Reading
        How the shards are read.
    options : PilotOptions
        Options as in `create`.
    n_topics : int, optional
        Number of topics of the refit; by default the largest number that the store allows.
    threads : int
        Threads of a worker; all are busy during the measurement.
    codocuments : bool
        Whether the store has co-document counts.
    halves : bool
        Whether the store has halves of the documents.

    Raises
    ------
    ShardError, InvalidInput
        As `create`.
    NotIdentifiable
        The sample is too small for a single topic.
    """
    corpus = CorpusSize.of(shards)
    sampled = spread(shards, threads, options.seed)
    reading = _in_languages(reading, sampled, options)
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        pilot, drawing = _pilot(sampled, corpus, reading, options)
        with tempfile.TemporaryDirectory(prefix="streaming-moments-plan-") as folder:
            store = MomentStore.create(
                f"{folder}/store",
                pilot.vocabulary,
                reading.policy,
                pilot.basis,
                reading.form,
                codocuments=codocuments,
                halves=halves,
            )
            pieces, open_shard = read_some(sampled, store, reading, pool)
            job = Job(
                corpus,
                store.counts,
                store.row_blocks,
                n_topics or options.max_topics or pilot.topics or MOST_TOPICS,
                options.pilot_documents,
                pilot.room,
            )
            read = reading_costs(pieces, sampled, open_shard)
            factor = corpus.nbytes / read.sampled_bytes
            blocks = _block_costs(job, store, pieces, factor, pool, threads, options.seed)
    drawn = min(options.pilot_documents, read.passages * corpus.nbytes)
    drawing = replace(drawing, choose=drawing.choose * drawn / max(pilot.documents, 1))
    return job, StepCosts(threads, drawing, read, blocks)


def _in_languages(reading: Reading, sampled: Sequence[Shard], options: PilotOptions) -> Reading:
    """Find stop words and phrases in the first chunks of shards, if the policy requests these."""
    policy, more = reading.policy, reading.storage_options
    if policy is None or not (policy.seeks_languages or policy.phrase_words):
        return reading
    quota = max(1, _LANGUAGE_PASSAGES // len(sampled))
    chunk = replace(LIMITS, batch_bytes=BATCH_BYTES // _PIECES_PER_THREAD)
    samples = [
        sample_shard(shard, reading.form, policy, quota, options.seed, chunk, more, chunks=1)
        for shard in sampled
    ]
    return replace(
        reading, policy=settled(merge_samples(samples), policy, options.min_documents)[1]
    )


def spread(shards: Sequence[Shard], threads: int, seed: int) -> list[Shard]:
    """Choose shards spread over the corpus, enough for all threads."""
    order = np.random.default_rng(seed).permutation(len(shards))
    taken: list[Shard] = []
    wanted = _PIECES_PER_THREAD * threads
    for place in order:
        taken.append(shards[place])
        if sum(min(shard.size / (BATCH_BYTES / 4), 1.0) for shard in taken) >= wanted:
            break
    return taken


def _pilot(
    sampled: Sequence[Shard], corpus: CorpusSize, reading: Reading, options: PilotOptions
) -> tuple[Pilot, PilotCosts]:
    """Make a pilot from the first chunk of each shard, and measure what it costs."""
    chunk = replace(LIMITS, batch_bytes=BATCH_BYTES // _PIECES_PER_THREAD)
    quota = max(1, options.pilot_documents // len(sampled))

    def sample(shard: Shard, number: int) -> TermSample:
        form, policy, more = reading.form, reading.policy, reading.storage_options
        return sample_shard(shard, form, policy, number, options.seed, chunk, more, chunks=1)

    sample(sampled[0], 1)
    drawing, samples = timed(lambda: [sample(shard, quota) for shard in sampled])
    passing, ones = timed(lambda: [sample(shard, 1) for shard in sampled])
    seen = max(1, sum(one.documents_seen for one in ones))
    drawn = max(1, sum(one.batch.documents for one in samples))
    # Estimate how many passages the corpus has. The pilot of `create` will sample more passages
    # than this trial, so more words will occur in at least `min_documents` of them.
    chunks = sum(min(shard.size, chunk.batch_bytes) for shard in sampled)
    passages = seen * corpus.nbytes / chunks

    def chosen(documents: int) -> tuple[float, Pilot]:
        expected = min(float(documents), passages)
        least = max(1, round(options.min_documents * min(1.0, drawn / expected)))
        kept = replace(options, min_documents=least)
        return timed(lambda: choose(samples, reading.policy, kept))

    choosing, pilot = chosen(options.pilot_documents)
    few = pilot.vocabulary.n_words < options.vocabulary_size and pilot.basis.table is None
    if few and options.pilot_documents == PILOT_DOCUMENTS < passages:
        # `create` enlarges its pilot in the same way if the pilot has too few words
        choosing, pilot = chosen(MOST_TIMES * PILOT_DOCUMENTS)
    return pilot, PilotCosts(passing / seen, max(drawing - passing, 0.0) / drawn, choosing)


def read_some(
    sampled: Sequence[Shard], store: MomentStore, reading: Reading, pool: ThreadPoolExecutor
) -> tuple[list[_Piece], float]:
    """Read one batch of each shard on all threads; also return the seconds for a tiny batch."""
    options = reading.storage_options
    tiny = replace(LIMITS, batch_bytes=_WARM_BYTES)

    def read(shard: Shard, limits: ReadLimits) -> _Piece:
        context = ReadingContext.of(store, limits, options)
        # give a placeholder for the hash of the shard, because hashing is timed separately
        batches = context.prepared(shard, ShardContent("-"))
        seconds, (first, read) = timed(lambda: next(batches))
        rest = next(batches, None)
        share = 1.0 if rest is None else share_before(shard, reading.form, read.after, options)
        return _Piece(first, seconds, share * shard.size)

    read(sampled[0], tiny)
    least = min(read(sampled[0], tiny).seconds for _ in range(_REPEATS))
    return list(pool.map(read, sampled, [LIMITS] * len(sampled))), least


def reading_costs(
    pieces: Sequence[_Piece], sampled: Sequence[Shard], open_shard: float
) -> ReadCosts:
    nbytes = sum(piece.nbytes for piece in pieces)
    seconds = sum(max(piece.seconds - open_shard, 0.0) for piece in pieces)
    hashing = 0.0
    if sampled[0].etag is None:
        content = bytes(_HASHED_BYTES)
        seconds_hashed = _median(lambda: timed(lambda: hashlib.sha256(content))[0])
        hashing = seconds_hashed / _HASHED_BYTES
    return ReadCosts(
        sampled_bytes=nbytes,
        read=seconds / nbytes + hashing,
        open_shard=open_shard,
        counts=sum(piece.batch.nbytes for piece in pieces) / nbytes,
        passages=sum(piece.batch.totals.n_documents for piece in pieces) / nbytes,
        tokens=sum(piece.batch.totals.n_tokens for piece in pieces) / nbytes,
    )


def _block_costs(
    job: Job,
    store: MomentStore,
    pieces: Sequence[_Piece],
    factor: float,
    pool: ThreadPoolExecutor,
    threads: int,
    seed: int,
) -> BlockCosts:
    """Measure the costs of one row block on each thread.

    The corpus is `factor` times as large as `pieces`, the parts of shards that were read.
    """
    layout = store.layout
    blocks = range(min(threads, store.row_blocks))
    batches = [piece.batch for piece in pieces]

    def added(index: int) -> MomentStatistics:
        return store.counts.of(lump, layout.block(index))

    def empty(index: int) -> MomentStatistics:
        return store.counts.of([], layout.block(index))

    words, fingerprint = store.vocabulary.n_words, store.vocabulary.fingerprint
    one = CountBatch.from_rows([0, 1], [0], None, words, fingerprint)
    warm = ProjectedBatch.of(one, store.basis)
    store.counts.of([warm], layout.block(0))
    zeroing = _median(lambda: timed_on_all(pool, empty, blocks)[0])
    # time the joining of batches only once, because all row blocks use the same joined batches
    joining, lump = timed(lambda: list(store.counts.joined(batches, layout.block_bytes)))
    adding, statistics = timed_on_all(pool, added, blocks)
    gathered = sum(batch.nbytes for batch in batches)
    grown = list(pool.map(lambda one: _grown(one, factor, seed), statistics))
    writer = store.new_segment()
    writing = _median(lambda: timed_on_all(pool, writer.write_block, grown)[0])
    records = writer.write_block(grown[0])
    files = [(record.path, store.folder.read(_path(writer, record.path))) for record in records]

    def load(index: int) -> float:
        group = StoredGroup({**encode_metadata(layout.specs, {}), **dict(files)}, store.url)
        total = 0.0
        for name, array in statistics[index].arrays().items():
            # read the chunk of this array in the written block
            stored = group.chunk(name, layout.specs[name], grown[0].block.index)[0]
            total += float((array + stored[: len(array)]).flat[0])
        return total

    loading = _median(lambda: timed_on_all(pool, load, blocks)[0])
    _compile_fits()
    swept = _swept(batches, store, statistics, pool, job.n_topics, seed)
    rows, k, (whitening, directions, parts) = swept
    finishing, model = timed(
        lambda: TopicModel.finished(whitening, directions, parts, rows.lengths, rows.basis, _METHOD)
    )
    # time refinement on blocks whose pair counts were made as dense as those of the whole corpus
    renewing = _refined(replace(rows, blocks=grown), model)
    fewer, spent = packed_size(job.n_topics) / packed_size(k), rows.seconds
    return BlockCosts(
        add=(max(adding - zeroing, 0.0) + joining / layout.row_blocks) / gathered,
        write=zeroing + writing,
        load=loading,
        copy=copying(store, writer, records),
        disk_bytes=sum(len(content) for _, content in files),
        files=len(files),
        core_rows=spent["reading row blocks"],
        evidence=spent["whitened slices"] * fewer,
        topic_rows=spent["topic rows"] * fewer,
        whitening=spent["whitening"],
        rotation=spent["rotation"] * fewer,
        finish=finishing,
        pairs=spent["pair counts"],
        refinement=spent[STEP] * job.n_topics / k,
        renewal=renewing * job.n_topics / k,
    )


def _compile_fits() -> None:
    """Fit a tiny corpus to compile the kernels, so that timed steps contain no compilation.

    The planned refit will use compiled kernels, too.
    """
    batch = lda_corpus(n_documents=200, n_words=20, n_topics=2, mean_length=20, seed=0).batch
    fit(MomentStatistics.of(batch, Basis.from_pilot(batch, 2)), 2, _ALPHA0)


def _swept(
    batches: Sequence[ProjectedBatch],
    store: MomentStore,
    statistics: Sequence[MomentStatistics],
    pool: ThreadPoolExecutor,
    n_topics: int,
    seed: int,
) -> tuple[Timed, int, tuple[Whitening, Directions, list[TopicRows]]]:
    """Time the sweeps of a fit with as many topics as the sample allows, at most `n_topics`."""
    core, lengths = _core_moments(batches, store)
    known = {"reading row blocks": core}
    rows = Timed(store.basis, RowLengths(lengths), statistics, pool, known)
    while True:
        try:
            return rows, n_topics, sweep(rows, n_topics, Dirichlet(_ALPHA0), _METHOD, seed)
        except NotIdentifiable:
            if n_topics <= 1:
                raise
            n_topics //= 2


def _refined(rows: Timed, model: TopicModel) -> float:
    """Return the seconds to update the topics after a round of refinement.

    `rows` records the seconds that the round takes for the blocks.
    """
    start = PairTopics(model.topics, model.pair_weights, model.word_probabilities, rows.basis.core)
    held = pair_rows(rows)
    begin = begun(start)
    # the first run only warms up
    held.each(STEP, expected_ratios, begin)
    found = held.each(STEP, expected_ratios, begin)
    seconds, _ = timed(lambda: next_topics(found, begin))
    return seconds


def _grown(statistics: MomentStatistics, factor: float, seed: int) -> MomentStatistics:
    """Simulate the statistics of `factor` times as many documents as the sample has.

    Draws further counts, most of them into cells of the count tables that are not empty. The share
    of those that fall elsewhere is the share of the sample's counts in cells with a single count
    (Good and Turing).
    """
    rng = np.random.default_rng(seed)
    together, even = statistics.codocuments, statistics.even_pair_counts
    lengths = statistics.length_histogram
    # mean weight of a pair of tokens
    unit = max(lengths.C2 / max(replace(lengths, weights=POOLED).C2, 1), 1.0)
    return replace(
        statistics,
        pair_counts=_drawn(statistics.pair_counts, factor, rng, unit),
        triple_sketch=(statistics.triple_sketch * factor).astype(np.int64),
        codocuments=None if together is None else _drawn(together, factor, rng),
        even_pair_counts=None if even is None else _drawn(even, factor, rng, unit),
    )


def _drawn(
    counts: NDArray[np.int64], factor: float, rng: np.random.Generator, unit: float = 1.0
) -> NDArray[np.int64]:
    total = counts.sum()
    if factor <= 1 or not total:
        return counts
    unseen = counts[counts <= unit].sum() / total
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0) / total)
    expected = (1 - unseen) * counts + unseen * independent
    drawn = rng.poisson((factor - 1) / unit * expected)
    grown: NDArray[np.int64] = counts + np.rint(unit * drawn).astype(np.int64)
    return grown


def _core_moments(
    batches: Sequence[ProjectedBatch], store: MomentStore
) -> tuple[list[NDArray[np.int64]], LengthHistogram]:
    """Return the co-occurrence counts of core words in one batch: enough to time the whitening."""
    basis, projected = store.basis, batches[0]
    pairs = np.zeros((basis.core, basis.core), dtype=np.int64)
    projected.add_pairs(RowBlock(), pairs, None)
    rows = np.hstack([pairs, projected.weighted_counts[: basis.core, None]])
    blocks = [rows[RowBlock(index, store.row_blocks).rows] for index in range(store.row_blocks)]
    return blocks, LengthHistogram.of(projected.lengths, basis.weights)


def copying(store: MomentStore, writer: SegmentWriter, records: Sequence[FileRecord]) -> float:
    """Copy files of a segment within a store's folder and hash them; return the seconds."""
    known, place = {one.path: one for one in records}, f"segments/{writer.id}"

    def copy() -> None:
        found = read_files(store.folder, place, known, known)
        store.folder.write_all({f"copies/{path}": content for path, content in found.items()})
        store.folder.sync("copies")

    return _median(lambda: timed(copy)[0])


def _path(writer: SegmentWriter, path: str) -> str:
    return f"segments/{writer.id}/{path}"


def _median(work: Callable[[], float]) -> float:
    """Return the median seconds of short work, without the first run, which only warms up."""
    work()
    return float(np.median([work() for _ in range(_REPEATS)]))

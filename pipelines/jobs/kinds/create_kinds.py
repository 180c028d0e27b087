"""Create a store of another kind than counts: vocabularies and sketches from a pilot of shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.base import option
from streaming_moments.pipelines.cluster.memory import mebibytes, plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import (
    CountingOptions,
    PilotOptions,
    create,
    cut_to_room,
    of_share,
    pilot_limits,
    quotas,
)
from streaming_moments.pipelines.jobs.kinds.create_vectors import VectorsShape, vectors_of
from streaming_moments.pipelines.quantities import Count
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, Vocabulary, select_terms
from streaming_moments.statistics.edges.foundation import WHOLE_NODES, EdgesFoundation
from streaming_moments.statistics.kinds import KINDS
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.storage.counting.graphs.edge_batches import (
    added_counts,
    require_few_nodes,
    sample_edges,
)
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.symbols.sequences import (
    SYMBOLS,
    SequencesForm,
    Symbols,
)
from streaming_moments.storage.counting.symbols.symbol_samples import sample_symbols
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.vectors import BAD_ROWS, BadRows, VectorsForm
from streaming_moments.storage.counting.views import (
    ViewReader,
    ViewsForm,
    column_frequencies,
    sample_rows,
)
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import scipy.sparse as sp
else:
    pa, sp = LazyModule("pyarrow"), LazyModule("scipy.sparse")
    pc = LazyModule("pyarrow.compute")

# Symbols, and edges, of a pilot for each of the passages that one of documents would have.
_SYMBOLS_EACH = 50
_EDGES_EACH = 100
_COLUMNS = 22
# Of a pair of words of two views: it takes 16 bytes, four times, where a byte of a pilot stands for
# `PILOT_FACTOR`.
_PILOT_BYTES_A_PAIR = 4
_WORDS_AT_ONCE = 64
# Of a graph most directions of a sketch are noise, which never settles: communities have by then.
_BLOCKS = 10
# What only a store of documents has.
_OF_COUNTS = frozenset(
    {
        *("ids_column", "counts_column", "passage_words", "codocuments"),
        *("core", "max_topics", "length_weights"),
    }
)
_OF_WORDS = frozenset({"vocabulary_size", "min_documents"})
_OF_TEXTS = frozenset({"languages", "stop_words", "min_length", "max_document_fraction"})
_OF_VECTORS = frozenset({"squares", "fourth", "bad_rows"})


@dataclass(frozen=True)
class KindOptions:
    """What is counted of shards; each field says what it is in its help."""

    kind: str = option("What is counted.", CountsFoundation.kind, choices=tuple(KINDS))
    columns: str | None = option(
        "Of views three columns, a,b,c: a value is a word, of NAME:text each word of it. Of "
        "sequences one of lists, or sequence,time,symbol in this order, or sequence,from,symbols "
        "of lists [texts]. Of vectors one of lists of numbers, or several of numbers [vector]. Of "
        "edges both ends [source,target].",
        None,
        metavar="NAMES",
    )
    symbols: Symbols = option("A symbol of texts.", "characters", choices=SYMBOLS)
    sketch_columns: Count | None = option(
        "Of views, sequences and edges: columns of a sketch, twice the states and two more [22; "
        f"all of up to 128 words, of edges of up to {WHOLE_NODES:,} nodes]; of vectors one and a "
        "half for each component [50; all of up to 64].",
        None,
    )
    directed: bool = option("Of edges: only the source has the target for a neighbour.", False)
    squares: bool = option(
        "Of vectors: keep sums by which each coordinate has a variance in each component.", False
    )
    fourth: bool = option("Of vectors: keep fourth moments, for factors without skew.", False)
    bad_rows: BadRows = option(
        "Of vectors: whether a row of another width, or with NaN, is left out or spoils its shard.",
        "skip",
        choices=BAD_ROWS,
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else ()


@dataclass(frozen=True)
class _Made:
    """A foundation, how its shards are read, and where it comes from, in words."""

    foundation: Any
    reading: Mapping[str, Any]
    origin: str


def create_kind(
    url: str,
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
) -> MomentStore:
    """Make an empty store of any kind, whose foundation fits the shards.

    Parameters
    ----------
    url, shards, options, run
        As of `create`.
    shape : KindOptions
        The kind, and where its views or symbols are.
    counting : CountingOptions
        Format, dates, halves, coherence, and what makes texts into words.

    Raises
    ------
    StoreError
        The store exists, or cannot be written.
    ShardError
        A sampled shard cannot be read, or a column of it; or holds texts where others hold ids.
    InvalidInput
        No term is left, or options of another kind.
    BoundExceeded
        The memory budget cannot hold a read task.
    """
    if shape.kind == CountsFoundation.kind:
        return create(
            url,
            shards,
            counting.form,
            policy_of(shards, counting),
            options,
            run,
            codocuments=counting.codocuments,
            dates=counting.dates,
            halves=counting.halves,
        )
    require_absent(Folder.at(url, run.storage_options))
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = pilot_limits(run.limits, plan, run.cluster.memory)
    made = _MAKERS[shape.kind](shards, shape, counting, options, run, limits, plan.in_flight)
    return MomentStore.create_on(
        url,
        made.foundation,
        {**counting.form.to_json(), READING: made.reading},
        f"create from {made.origin}",
        run.storage_options,
        dates=counting.dates,
        pilot={**asdict(options), **asdict(shape)},
    )


def policy_of(shards: Sequence[Shard], counting: CountingOptions) -> TokenPolicy | None:
    """What makes the texts of documents into words; None where shards hold ids or categories.

    Raises
    ------
    ShardError
        One holds something else than the first.
    InvalidInput
        Options of texts are given, and there are none.
    """
    form, first = counting.form, shards[0].url
    holds = form.holds(first)
    for shard in shards:
        if (other := form.holds(shard.url)) != holds:
            raise ShardError(
                shard.url, f"holds {other} and {first} {holds}; a store is of one of them"
            )
    if holds == "texts":
        return counting.policy
    if counting.passage_words or counting.languages or counting.stop_words:
        raise InvalidInput(
            "token ids and categories have no order and no spelling: leave out --passage-words, "
            "--language and --stop-word"
        )
    return None


def require_options_of(
    shape: KindOptions, counting: CountingOptions, options: PilotOptions
) -> None:
    """Refuse options that the kind has no use for, and columns in which its records cannot lie.

    Raises
    ------
    InvalidInput
        Names them.
    """
    given = _changed(counting) | _changed(options)
    own = _changed(shape) - {"kind"}
    if shape.kind == CountsFoundation.kind:
        idle = own
    elif shape.kind == VectorsFoundation.kind:
        idle = given & (_OF_COUNTS | _OF_TEXTS | _OF_WORDS) | own & {"symbols", "directed"}
    elif shape.kind == EdgesFoundation.kind:
        idle = given & (_OF_COUNTS | _OF_TEXTS | _OF_WORDS) | own & (_OF_VECTORS | {"symbols"})
    elif shape.kind == SequencesFoundation.kind:
        idle = given & (_OF_COUNTS | _OF_TEXTS) | own & (_OF_VECTORS | {"directed"})
    else:
        idle = given & _OF_COUNTS | own & (_OF_VECTORS | {"symbols", "directed"})
    if idle:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(idle))
        raise InvalidInput(f"a store of kind {shape.kind} has no use for {flags}; leave it out")
    form_of(shape)


def form_of(shape: KindOptions) -> Any:
    """Where the records of a kind lie, with their `columns`; None of documents.

    Raises
    ------
    InvalidInput
        Columns in which they cannot lie.
    """
    return _FORMS[shape.kind](shape) if shape.kind in _FORMS else None


def _changed(options: Any) -> set[str]:
    return {one.name for one in fields(options) if getattr(options, one.name) != one.default}


def _views(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
    limits: ReadLimits,
    in_flight: int,
) -> _Made:
    views = replace(_views_form(shape), policy=counting.policy)
    calls = [
        (shard, counting.form, views.columns, quota, options.seed + place, own, run.storage_options)
        for place, (shard, quota) in enumerate(quotas(shards, options))
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("sampling shards", sample_rows, calls, in_flight)
    table = pa.concat_tables(samples, promote_options="permissive")
    vocabularies: Any = tuple(
        _words(table[name], name, views.policy if text else None, options)
        for name, text in zip(views.columns, views.texts, strict=True)
    )
    batch, _ = ViewReader.over(counting.form, views, vocabularies).counted(
        table, np.zeros(table.num_rows, np.bool_), "the pilot"
    )
    matrices = [view.to_csr() for view in batch.views]
    bases: Any = tuple(
        sketch_of(
            pairs_of(matrices, place, limits.pilot_bytes),
            words,
            shape.sketch_columns,
            options.seed + place,
        )
        for place, words in enumerate(vocabularies)
    )
    foundation = ViewsFoundation(bases, vocabularies, views.columns, counting.halves)
    sizes = ", ".join(f"{name} ({one.n_words:,})" for name, one in foundation.words.items())
    most = cut_to_room(table.nbytes, limits) if table.num_rows < options.pilot_documents else ""
    origin = (
        f"a pilot of {table.num_rows:,} records{most} in {len(samples)} shards: words of {sizes}"
    )
    return _Made(foundation, views.to_json(), f"{origin}; {_state(foundation)}")


def pairs_of(views: Sequence[Any], place: int, room: int) -> Any:
    """(n, m) sparse counts of how often words of a view go together with those of the others.

    Of fewer records where those of all take too much memory.

    Raises
    ------
    BoundExceeded
        Those of one record do.
    """
    most = room // _PILOT_BYTES_A_PAIR
    while True:
        own, others = views[place], sp.hstack([*views[:place], *views[place + 1 :]], format="csr")
        parts, pairs, words = [], 0, sp.csr_array(own.T)
        for start in range(0, max(1, words.shape[0]), _WORDS_AT_ONCE):
            parts.append(words[start : start + _WORDS_AT_ONCE] @ others)
            pairs += parts[-1].nnz
            if pairs > most:
                break
        else:
            return sp.vstack(parts, format="csr")
        if own.shape[0] == 1:
            raise BoundExceeded(
                f"the words of one record go together in more than {most:,} pairs, which take more "
                "memory than a pilot may; raise --memory, or lower --vocabulary-size"
            )
        views = [one[::2] for one in views]


def _words(column: Any, name: str, policy: Any, options: PilotOptions) -> Vocabulary:
    """Words of a view, by falling frequency; of texts the most frequent ones are left out."""
    found = column_frequencies(column, name, policy)
    share = options.max_document_fraction if policy is not None else 1.0
    try:
        chosen = select_terms(found, options.vocabulary_size, options.min_documents, share)
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from error
    terms = tuple(found.terms[place] for place in chosen)
    mark = "" if policy is None else policy.fingerprint
    return Vocabulary(terms, core_of(len(terms)), mark)


def _sequences(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
    limits: ReadLimits,
    in_flight: int,
) -> _Made:
    sequences = _sequences_form(shape)
    calls = [
        (shard, counting.form, sequences, _SYMBOLS_EACH * quota, own, run.storage_options)
        for shard, quota in quotas(shards, options)
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("sampling shards", sample_symbols, calls, in_flight)
    terms = sorted({term for sample in samples for term in sample.symbols})
    places = {term: place for place, term in enumerate(terms)}
    counts = np.zeros(len(terms), dtype=np.int64)
    parts = []
    for sample in samples:
        own = np.array([places[term] for term in sample.symbols], dtype=np.int64)
        np.add.at(counts, own, sample.counts)
        parts.append(
            np.column_stack([own[sample.pairs[:, 0]], own[sample.pairs[:, 1]], sample.pairs[:, 2]])
        )
    # a symbol's occurrences stand for the documents of a word
    found = TermFrequencies(terms, counts, counts, int(counts.sum()))
    chosen = select_terms(found, options.vocabulary_size, options.min_documents, 1.0)
    alphabet = Vocabulary(tuple(terms[place] for place in chosen), core_of(chosen.size))
    row = np.full(len(terms), -1)
    row[chosen] = np.arange(chosen.size)
    pairs = np.concatenate(parts)
    before, after = row[pairs[:, 0]], row[pairs[:, 1]]
    known = (before >= 0) & (after >= 0)
    shape_of = (chosen.size, chosen.size)
    bigrams = sp.csr_array((pairs[known, 2], (before[known], after[known])), shape=shape_of)
    together = sp.hstack([bigrams, bigrams.T], format="csr")
    sketch = sketch_of(together, alphabet, shape.sketch_columns, options.seed)
    steps = sum(sample.steps for sample in samples)
    numbered = 0 < steps == sum(sample.ones for sample in samples)
    sequences = replace(sequences, numbered=numbered)
    foundation = SequencesFoundation(alphabet, sketch, counting.halves, sequences.named)
    number = sum(sample.sequences for sample in samples)
    origin = (
        f"a pilot of {int(counts.sum()):,} symbols of {number:,} sequences in {len(samples)} "
        f"shards: an alphabet of {alphabet.n_words:,}"
    )
    if numbered:
        origin += f"; {sequences.columns[1]} goes up by one, and what is missing is a gap"
    return _Made(foundation, sequences.to_json(), f"{origin}; {_state(foundation)}")


def _vectors(shards: Sequence[Shard], shape: KindOptions, *given: Any) -> _Made:
    kept = VectorsShape(_vectors_form(shape), shape.sketch_columns, shape.squares, shape.fourth)
    return _Made(*vectors_of(shards, kept, *given))


def _edges(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
    limits: ReadLimits,
    in_flight: int,
) -> _Made:
    columns = _edges_form(shape)
    # names are of all shards, edges of some
    drawn_of, more = dict(quotas(shards, options)), (limits, run.storage_options)
    told = counting.form, columns
    calls = [
        (shard, *told, _EDGES_EACH * quota, options.seed + place, *more, own.pilot_bytes)
        for place, shard in enumerate(shards)
        for quota in [drawn_of.get(shard, 0)]
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("reading nodes", sample_edges, calls, in_flight)
    counted = added_counts([sample.nodes for sample in samples])
    require_few_nodes([counted], limits, shape.sketch_columns or _COLUMNS)
    known = counted["name"].combine_chunks()
    nodes = Vocabulary(tuple(known.to_pylist()), core_of(len(known)))
    sketch, drawn = None, pa.concat_tables([sample.edges for sample in samples])
    if shape.sketch_columns is not None or nodes.n_words > WHOLE_NODES:
        source, target = (
            np.asarray(pc.index_in(drawn[name], value_set=known), dtype=np.int64)
            for name in ("source", "target")
        )
        both = source != target
        square = (nodes.n_words, nodes.n_words)
        together = sp.csr_array((np.ones(int(both.sum())), (target[both], source[both])), square)
        if not columns.directed:
            together = sp.csr_array(together + together.T)
        # an edge that is there twice is one
        together.data[:] = 1.0
        wanted = shape.sketch_columns or _COLUMNS
        sketch = sketch_of(together, nodes, wanted, options.seed, _BLOCKS)
    foundation = EdgesFoundation(nodes, sketch, columns.directed, counting.halves)
    what = "all neighbours of each"
    if sketch is not None:
        twice = "counts twice (lists by `streaming-moments neighbours` hold it once)"
        what = f"{sketch.columns} columns of each part; an edge that two shards hold {twice}"
    origin = f"{nodes.n_words:,} nodes and {drawn.num_rows:,} edges of {len(shards)} shards: {what}"
    return _Made(foundation, asdict(columns), f"{origin}; {_state(foundation)}")


def _views_form(shape: KindOptions) -> ViewsForm:
    return ViewsForm.parse(shape.names)


def _sequences_form(shape: KindOptions) -> SequencesForm:
    return SequencesForm(shape.symbols, shape.names)


def _vectors_form(shape: KindOptions) -> VectorsForm:
    return VectorsForm(shape.names or VectorsForm().columns, shape.bad_rows)


def _edges_form(shape: KindOptions) -> EdgeColumns:
    names = shape.names or ("source", "target")
    if len(names) != 2 or len(set(names)) != 2:
        raise InvalidInput(
            f"edges have two ends, in different columns, got {', '.join(names)}; give them as "
            "--columns source,target"
        )
    return EdgeColumns(names[0], names[1], shape.directed)


_FORMS: Mapping[str, Callable[[KindOptions], Any]] = MappingProxyType(
    {
        ViewsFoundation.kind: _views_form,
        SequencesFoundation.kind: _sequences_form,
        VectorsFoundation.kind: _vectors_form,
        EdgesFoundation.kind: _edges_form,
    }
)
_MAKERS: Mapping[str, Callable[..., _Made]] = MappingProxyType(
    {
        ViewsFoundation.kind: _views,
        SequencesFoundation.kind: _sequences,
        VectorsFoundation.kind: _vectors,
        EdgesFoundation.kind: _edges,
    }
)


def _state(foundation: Any) -> str:
    from streaming_moments.storage.log.layout import SegmentLayout, row_blocks_for

    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    return f"{mebibytes(layout.state_bytes)} of sums"

"""Polish: improve a model by passes over documents; each pass runs as tasks over shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

from threadpoolctl import threadpool_limits

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.models.base import Model
from streaming_moments.models.passes.families import Passes, passes_of
from streaming_moments.models.passes.polishing import PASSES
from streaming_moments.models.passes.stopping import AUTO
from streaming_moments.models.provenance import Polishing
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.model_memory import plan_polish
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import task_key
from streaming_moments.pipelines.jobs.drawn_records import drawn_records
from streaming_moments.pipelines.jobs.rebase import present_shards
from streaming_moments.pipelines.jobs.refit import with_coherence
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.storage.contents import changed, content_of
from streaming_moments.storage.formats import START
from streaming_moments.storage.operations.lineages import states_compared, store_for
from streaming_moments.storage.operations.polishing import PassSums, PolishingFolder
from streaming_moments.storage.operations.windows import (
    StatisticsSource,
    Window,
    WindowedStore,
    windowed,
)
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.shards import Shard, fingerprint
from streaming_moments.storage.store.model_changes import Succession, require_free
from streaming_moments.storage.store.store import MomentStore

_SUM = "sum"
# make at least about this many groups of shards, so that workers can share the work
_FEWEST_GROUPS = 16
_SUMS_AT_A_TIME = 16  # a task adds up the sums of at most this many groups
# the documents of a group take at most about this many times as many bytes as its stored sum
_BYTES_A_SUM = 4

T = TypeVar("T", bound=Model)
_Marked = tuple[Shard, str]


@dataclass(frozen=True, eq=False)
class PolishResult:
    """Result of polishing.

    model : polished model, with topics in the order of the given model, and without coherence
    note : how the model was polished
    bad : shards left out because they no longer exist or are unreadable
    work : folder with the stored sums of the passes; it can be deleted once the model is committed
    elsewhere : whether the passes did not begin with the given model, but with another start; then
        the topics may differ from those of the given model
    """

    model: Any
    note: Polishing
    bad: tuple[ShardError, ...]
    work: PolishingFolder
    elsewhere: bool = False


@dataclass(frozen=True, eq=False)
class PassContext:
    """All that a task of a pass needs besides its shards.

    reader : `Passes.reader` of the model before the pass
    work : where sums are stored
    number : number of the pass, from 1
    keep_going : leave out unreadable shards
    """

    reading: ReadingContext
    reader: Any
    work: PolishingFolder
    number: int
    keep_going: bool

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls,
        reading: ReadingContext,
        model: Any,
        work: PolishingFolder,
        number: int,
        keep_going: bool,
    ) -> PassContext:
        """Return the context.

        A task calls this method, so that Dask can repeat the call if a worker dies.
        """
        reader = passes_of(type(model)).reader(model, reading.store.foundation)
        return cls(reading, reader, work, number, keep_going)


def polish(
    source: StatisticsSource,
    model: T,
    run: Run,
    shards: Sequence[Shard] | None = None,
    passes: int | Literal["auto"] = PASSES,
    alpha: bool = False,
    parent: str = "",
    skip_bad_shards: bool = False,
    allow_missing: bool = False,
) -> PolishResult:
    """Return the model after some passes over documents; bit for bit the same on any cluster.

    Works as `streaming_moments.polished`. A pass reads each shard once. The store holds the sums
    of each group of shards until the caller commits the model. If the same job is run again after
    a failure, it continues after the last stored group. Each group counts once, however often it
    was read. This function commits nothing.

    In some families, the first polish begins either with the fitted model or with another start,
    which is made from 8,000 records drawn from the shards. The job compares the two starts by the
    likelihood of these records, or of a held-out half of them; `start` of the model names the
    chosen one.

    Parameters
    ----------
    source : MomentStore or WindowedStore
        Store with the words of the model; see `storage.operations.lineages.store_for`. If it is a
        window, its own shards are read by default.
    model : Model
        Model of a family in `models.passes`.
    run : Run
        Cluster and options.
    shards : sequence of Shard, optional
        Shards to read, counted or not; by default those of the ledger, as they were counted.
    passes : int or "auto"
        At least 1, or "auto", as for `streaming_moments.polished`.
    alpha : bool
        Whether to learn alpha as well.
    parent : str
        Name of the model in the store.
    skip_bad_shards : bool
        Leave out unreadable shards; otherwise they stop the job.
    allow_missing : bool
        Leave out shards of the ledger that no longer exist or have new content.

    Raises
    ------
    InvalidInput
        The model has no passes, `passes` is below 1, no shard has records, or shards of the ledger
        are missing.
    ShardError
        A shard is unreadable or changed meanwhile.
    BoundExceeded
        A task does not fit into the memory budget.
    StoreError
        The store cannot be read or written.
    """
    family = passes_of(type(model))
    family.require(model, alpha)
    most = family.number(passes)
    if isinstance(most, str) or most < 1:
        raise InvalidInput(f"{passes} passes are asked for; give at least 1")
    store, window = _store_of(source)
    if shards is None and window.half_life is not None:
        raise InvalidInput(
            "the model was fitted with a half-life, so older documents count less, but passes "
            "count all documents equally; name the shards to read, or fit a model without a "
            "half-life"
        )
    n_words, n_topics = family.shape(model)
    plan = plan_polish(n_words, n_topics, run.cluster.threads, run.cluster.memory, run.limits)
    marked, bad = _marked(source, shards, run, skip_bad_shards, allow_missing)
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    client = run.cluster.client
    reading = client.submit(
        ReadingContext.of,
        store,
        limits,
        run.storage_options,
        pure=False,
        key=task_key("opening the store"),
    )
    given = model
    if family.second is not None and cast("Any", model).polishing is None:
        drawn = drawn_records(
            marked, reading, family.second.joined, run, plan.in_flight, skip_bad_shards
        )
        # use one thread, so that the bits of the result do not depend on the number of threads
        with threadpool_limits(1):
            model = family.second.start(model, drawn, store.foundation, passes)
    elsewhere = model is not given
    digest = _digest(
        store, family, model, marked, alpha, skip_bad_shards, run.limits.document_bytes
    )
    work = PolishingFolder(store.folder, digest, family.sums)
    groups = list(_groups(marked, getattr(model, family.arrays[0]).nbytes))
    total: PassSums | None = None
    before: Any = None
    model = family.start(model)
    for number in range(1, most + 1):
        context = client.submit(
            PassContext.of,
            reading,
            model,
            work,
            number,
            skip_bad_shards,
            pure=False,
            key=task_key("opening the store"),
        )
        calls = [(place, group, context) for place, group in enumerate(groups)]
        step = f"polishing, pass {number} of {'at most ' * (passes == AUTO)}{most}"
        parts = run.calls(step, count_group, calls, plan.in_flight)
        _add_up(work, number, parts, run, plan.in_flight)
        total = work.summed(number, [_SUM])
        if not total.expected.documents:
            raise InvalidInput(
                f"there are no records to polish with: {of_number(total.shards, 'shard')} could be "
                f"read and {len(total.bad)} could not; give shards with records like those of the "
                "store"
            )
        sums, earlier, before = total.expected, before, model
        model = family.after(number, before, sums, store.foundation, alpha)
        if passes == AUTO and family.settled(before, model, earlier):
            break
    assert total is not None
    expected = total.expected
    made = Polishing(parent, number, alpha, total.shards, expected.documents, expected.tokens)
    unread = [ShardError(url, reason) for url, reason in total.bad]
    noted: Any = replace(cast("Any", model), polishing=made)
    return PolishResult(noted, made, (*bad, *unread), work, elsewhere)


@dataclass(frozen=True, eq=False)
class Polished:
    """A polished model of a store.

    parent : name of the model that the passes began with
    model : polished model, with coherence
    kept : the store with the model, if it was saved
    result : result of the passes; their sums are deleted
    """

    parent: str
    model: Any
    kept: MomentStore | None
    result: PolishResult


def polish_stored(
    store: MomentStore,
    parent: str | None,
    run: Run,
    shards: Sequence[Shard] | None = None,
    passes: int | Literal["auto"] = PASSES,
    alpha: bool = False,
    name: str | None = None,
    skip_bad_shards: bool = False,
    allow_missing: bool = False,
) -> Polished:
    """Polish a stored model, given by name or tag, and save it under a new name.

    Without `name`, nothing is saved. Other arguments and errors as for `polish`. Raises
    StoreError if the name exists.
    """
    begun = model_called(store.commit, parent)
    if name is not None:
        require_free(store.commit, name)
    model = store.load_any_model(begun)
    source = windowed(store_for(store, begun, model), Window.of_model(model))
    result = polish(
        source, model, run, shards, passes, alpha, begun, skip_bad_shards, allow_missing
    )
    # compute coherence from the statistics to which the parent model was fitted
    fitted = store.at(store.models[begun].version)
    polished = with_coherence(windowed(fitted, Window.of_model(model)), result.model, run)
    # topics keep the numbers that they have in the parent model; a latent tree has no topics
    topics = {topic: topic for topic in range(getattr(polished, "n_topics", 0))}
    if result.elsewhere and (near := states_compared((fitted, model), (fitted, polished))):
        topics = {pair.before: pair.after for pair in near.kept}
    same = Succession(begun, topics) if topics else None
    kept = None
    if name is not None:
        message = f"polish: {begun}, {agreeing(result.note.passes, 'pass', 'passes')}"
        kept = fitted.save_model(name, polished, message, after=same)
    result.work.delete()
    return Polished(begun, polished, kept, result)


def count_group(place: int, group: Sequence[_Marked], context: PassContext) -> str:
    """Store the sums of a pass over a group of shards, unless these sums are stored already.

    Returns the name of the sums.
    """
    part = str(place)
    if context.work.find(context.number, part) is not None:
        return part
    sums = PassSums(_nothing(context.reader.model), 0)
    for shard, mark in group:
        try:
            sums = sums.add(_of_shard(shard, mark, context))
        except ShardError as error:
            if not context.keep_going:
                raise
            sums = replace(sums, bad=(*sums.bad, (error.url, error.reason)))
    context.work.write(context.number, part, sums)
    return part


def sum_parts(work: PolishingFolder, number: int, name: str, parts: Sequence[str]) -> str:
    """Add up the sums `parts` of a pass and store the total, unless it is stored already.

    Returns the name of the total.
    """
    if work.find(number, name) is None:
        work.write(number, name, work.summed(number, parts))
    return name


def _add_up(
    work: PolishingFolder, number: int, parts: Sequence[str], run: Run, in_flight: int
) -> None:
    """Store the sum of all groups of a pass; add up in levels, because there may be many groups."""
    step, left, level = "adding up a pass", list(parts), 0
    while len(left) > _SUMS_AT_A_TIME:
        level += 1
        heaps = [left[at : at + _SUMS_AT_A_TIME] for at in range(0, len(left), _SUMS_AT_A_TIME)]
        calls = [(work, number, f"{_SUM}-{level}-{at}", heap) for at, heap in enumerate(heaps)]
        left = run.calls(step, sum_parts, calls, in_flight)
    run.calls(step, sum_parts, [(work, number, _SUM, left)], in_flight)


def mark_of(shard: Shard, storage_options: Mapping[str, object] | None = None) -> str | ShardError:
    """Return the fingerprint of a shard, or the reason why it is unreadable."""
    try:
        return fingerprint(shard, storage_options)
    except ShardError as error:
        return error


def _of_shard(shard: Shard, mark: str, context: PassContext) -> PassSums:
    # sum up each shard separately; if it turns out to be unreadable, nothing of it is added to
    # the sums of its group
    reading, reader = context.reading, context.reader
    total = _nothing(context.reader.model)
    content = content_of(shard, reading.storage_options)
    if content.mark != mark:
        raise changed(shard.url)
    batches = (read.batch for read in reading.read(shard, START, content))
    for batch in passes_of(type(reader.model)).cut(batches):
        total = reader.add(batch, total)
    return PassSums(total, 1)


def _nothing(model: Any) -> Any:
    """Return empty sums."""
    return passes_of(type(model)).sums.zero(model)


def _store_of(source: StatisticsSource) -> tuple[MomentStore, Window]:
    if isinstance(source, WindowedStore):
        return source.store, source.window
    return source, Window()


def _marked(
    source: StatisticsSource,
    shards: Sequence[Shard] | None,
    run: Run,
    keep_going: bool,
    allow_missing: bool,
) -> tuple[list[_Marked], list[ShardError]]:
    """Return the shards to read, each with the fingerprint of its content, and errors of others."""
    if shards is None:
        present, missing = present_shards(source, run, allow_missing)
        ledger = source.ledger()
        counted = [(shard, record) for shard in present if (record := ledger.find(shard.url))]
        left_out = [ShardError(url, reason) for url, reason in missing.items()]
        return [(shard, record.fingerprint) for shard, record in counted], left_out
    found: list[_Marked] = []
    bad: list[ShardError] = []
    marks = run.looked_at("looking for shards", mark_of, shards)
    for shard, mark in zip(shards, marks, strict=True):
        if isinstance(mark, str):
            found.append((shard, mark))
        elif keep_going:
            bad.append(mark)
        else:
            raise mark
    if not found:
        raise InvalidInput(f"none of {len(shards)} SHARDS can be read; give some that can")
    return found, bad


def _groups(marked: Sequence[_Marked], sum_bytes: int) -> Iterator[list[_Marked]]:
    """Divide shards into groups. One task reads a group and stores one sum.

    Groups depend only on the shards and the model, so that any cluster can continue the job.
    """
    whole = sum(shard.size for shard, _ in marked)
    wanted = min(_BYTES_A_SUM * sum_bytes, whole // _FEWEST_GROUPS)
    group: list[_Marked] = []
    for one in marked:
        group.append(one)
        if sum(shard.size for shard, _ in group) >= wanted:
            yield group
            group = []
    if group:
        yield group


def _digest(
    store: MomentStore,
    family: Passes,
    model: Any,
    marked: Sequence[_Marked],
    alpha: bool,
    keep_going: bool,
    document_bytes: int,
) -> str:
    """Return a hash of all that the stored sums of passes depend on, except how many passes run."""
    arrays = [getattr(model, name) for name in family.arrays]
    alpha0 = getattr(model, "alpha_sum", getattr(model, "alpha0", None))
    covariance = getattr(model, "covariance", None)
    told = {
        "model": [hashlib.sha256(one.tobytes()).hexdigest() for one in arrays],
        "how": [model.name, alpha0, covariance, alpha, keep_going, document_bytes, *family.rules],
        "words": model.vocabulary or store.foundation.fingerprint,
        "form": dict(store.commit.lineage.form),
        "shards": [[shard.url, mark] for shard, mark in marked],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

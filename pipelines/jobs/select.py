"""Select: score the topics of many models in one pass over the statistics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, form_of
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.deprecation import renamed_arguments
from streaming_moments.errors import (
    BoundExceeded,
    InvalidInput,
    NotIdentifiable,
    StreamingMomentsError,
)
from streaming_moments.models.halves import (
    HalfRows,
    pairs_and_halves,
    predicting_rounds_there,
)
from streaming_moments.models.refinement import ROUNDS, pair_topics_of, require_rounds
from streaming_moments.models.rows import Rows
from streaming_moments.models.second_start import made_there
from streaming_moments.models.sweeps import (
    core_by_rows,
)
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.refit_memory import RefitPlan, plan_refit
from streaming_moments.pipelines.cluster.rows_on_cluster import OnCluster, on_aligned
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import (
    Candidate,
    Fitted,
    Selection,
    finish_leading,
    leading_evidence,
    leading_rows,
    model_at,
    needs_single,
    numbers_of,
    refusal_of,
    solve_leading,
)
from streaming_moments.pipelines.jobs.refit import (
    WordPairs,
    blocks_held,
    count_pairs,
    counted_lengths,
    known_alpha0,
    rows_by,
)
from streaming_moments.printing.remedies import Spell, of_commands, remedy
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes
from streaming_moments.statistics.counts.whitening import (
    AnyCoreMoments,
    CoreMoments,
    Whitening,
    core_rows,
    positive_eigenvalues,
    require_columns,
    require_eigenvalues,
    whiten,
)
from streaming_moments.storage.operations.windows import StatisticsSource

# copies of the topics in memory: parts from the row blocks, the joined parts, and the topics
_ROW_COPIES = 3


@renamed_arguments("0.3.0", "0.4.0", topics="n_topics")
def select(
    store: StatisticsSource,
    n_topics: Sequence[int],
    alphas: Sequence[float | Literal["auto"]],
    run: Run,
    method: str = "joint",
    seed: int = 0,
    refine: int | Literal["auto"] = ROUNDS,
    spell: Spell = of_commands,
) -> Selection:
    """Fit models of several numbers of topics and alpha0 to a version of a store; save no model.

    The models share work. The moments of the core words are computed once. For each alpha0, the
    whitening and the sums of whitened third moments are computed once, for the largest number of
    topics. Models with fewer topics use the leading columns of the whitening and the leading part
    of these sums. Only method "feature" computes the sums for each number of topics. One sweep over
    the row blocks makes the topics of as many models as fit into memory. It also reads the pair
    counts for refinement and the co-document counts of all top words. The models equal those of
    `refit`.

    Parameters
    ----------
    store : MomentStore or WindowedStore
        The version to fit, or a window of it.
    n_topics : sequence of int
        Numbers of topics.
    alphas : sequence of float or "auto"
        Sums of the Dirichlet parameters. "auto" takes the value with the best held-out
        log-likelihood at the middle number of topics, because the number hardly affects this value.
    run : Run
        Cluster and options.
    method : str
        Decomposition, as in `streaming_moments.fit_by`.
    seed : int
        Seed of random directions and starts of some methods.
    refine : int or "auto"
        Rounds of refinement of each model. "auto" stops for each model when its held-out
        log-likelihood no longer rises.
    spell : Spell
        How to write options in the reasons why candidates cannot be fitted.

    Returns
    -------
    Selection
        All candidates. A candidate that cannot be fitted contains the reason.

    Raises
    ------
    NotIdentifiable, BoundExceeded
        No candidate can be fitted.
    InvalidInput
        A number of topics or an alpha0 is missing or out of range, rounds are below 0, or "auto" is
        given for a store without halves.
    """
    started = time.perf_counter()
    decomposition_called(method, seed)
    if refine == "auto":
        require_halves(store, ["refine"])
    else:
        require_rounds(refine)
    numbers = sorted(set(n_topics))
    if not numbers or not alphas:
        raise InvalidInput("give at least one number of topics and one alpha0")
    require_topics(numbers[0])
    lengths = counted_lengths(store)
    plan, too_large = _planned(store, numbers, run, method, blocks_held(lengths.whole), refine)
    possible = [k for k in numbers if k not in too_large]
    rows = rows_by(plan, store, lengths, run, kept=3)
    known = _known_alphas(
        rows,
        [TopicOptions(topics=1, alpha0=alpha0, method=method, seed=seed) for alpha0 in alphas],
        possible[: len(possible) // 2 + 1],
        run,
    )
    forms = [form_of(alpha0) for alpha0 in dict.fromkeys(known)]
    refining = _Refining(*pairs_and_halves(rows, refine), refine, seed)
    found: dict[tuple[Form, int], Fitted | StreamingMomentsError] = {
        (form, k): error for form in forms for k, error in too_large.items()
    }
    if with_single := store.halves and needs_single(numbers, alphas):
        possible = [1, *possible]
    limit, basis = 0, store.basis
    for form, (whitened, positive) in zip(forms, _whitened(rows, possible, forms), strict=True):
        limit = min(max(limit, positive), basis.columns)
        for k in possible:
            try:
                require_eigenvalues(k, positive, form)
            except NotIdentifiable as error:
                found[form, k] = error
        if fitting := [k for k in possible if k <= positive]:
            fitted = _models(rows, plan, fitting, whitened, method, seed, refining)
            found |= {(form, k): one for k, one in fitted}
    ordered = {(form, k): found[form, k] for form in forms for k in numbers}
    models = [one for one in ordered.values() if isinstance(one, Fitted)]
    if not models:
        raise next(one for one in ordered.values() if isinstance(one, StreamingMomentsError))
    pairs = _pairs(rows, store, models)
    candidates = tuple(
        one.candidate(k, form.alpha0, pairs)
        if isinstance(one, Fitted)
        else Candidate(k, form.alpha0, refusal=one.said(spell))
        for (form, k), one in ordered.items()
    )
    # if the basis limits the number of topics, a rebase can raise this limit up to `core`; report
    # `core` only in this case
    core = basis.core if limit == basis.columns else None
    one = found[forms[0], 1] if with_single else None
    single = one.held_out if isinstance(one, Fitted) else None
    seconds = time.perf_counter() - started
    return Selection(candidates, seconds, limit=limit, core=core, single=single)


def _known_alphas(
    rows: OnCluster, given: Sequence[TopicOptions], numbers: Sequence[int], run: Run
) -> list[float]:
    """Find alpha0 for each of the given options.

    Uses the largest number of topics among `numbers` that the statistics identify.
    """
    refused: NotIdentifiable | None = None
    for topics in reversed(numbers):
        try:
            return [known_alpha0(rows, replace(one, topics=topics), run) for one in given]
        except NotIdentifiable as error:
            refused = refused or error
    assert refused is not None
    raise refused


@dataclass(frozen=True, eq=False)
class _Refining:
    """Function that refines a model on the rows `pairs`, and scores it on held-out `halves`."""

    pairs: Rows
    halves: HalfRows | None
    rounds: int | Literal["auto"]
    seed: int

    def __call__(self, model: Any) -> tuple[Any, float]:
        """Refine and score a model; return a handle to the result, and the elapsed seconds."""
        started, rounds = time.perf_counter(), self.rounds
        if rounds == "auto":
            assert self.halves is not None
            rows = self.halves.rows
            start = rows.once("halves", pair_topics_of, model, rows.basis.core)
            rounds = predicting_rounds_there(self.halves, start)
        refined = made_there(model, self.pairs, rounds, self.halves, self.seed)
        return refined, time.perf_counter() - started


def require_halves(store: StatisticsSource, auto: Sequence[str], model: Any = TopicModel) -> None:
    """Raise InvalidInput, with a remedy, if options are "auto" but the store has no halves."""
    if not auto or store.halves:
        return
    named = remedy(" and ".join(f"{{option.{name}}}" for name in auto))
    of, instead = "records", ", or create the store without {create.no_halves}"
    if model.finds_topics:
        of = "documents"
        instead = " ({select} compares numbers by coherence), or rebase the store with halves"
    raise InvalidInput(
        f"the store has no halves of the {of}, so `auto` cannot choose",
        remedy("give a number to {named}" + instead, named=named),
    )


def whiten_most(
    parts: Sequence[NDArray[Any]], lengths: Lengths, basis: Basis, topics: Sequence[int], form: Form
) -> tuple[Whitening | None, int]:
    """Return a whitening for the largest possible number of topics among the increasing `topics`.

    Also returns how many eigenvalues are positive: larger numbers are not possible. If all `topics`
    are larger, returns None in place of the whitening.
    """
    return whiten_most_of(CoreMoments.joined(parts, lengths), basis, topics, form)


def whiten_most_of(
    core: AnyCoreMoments, basis: Basis, topics: Sequence[int], form: Form
) -> tuple[Whitening | None, int]:
    """Do the same as `whiten_most` with core moments in any representation."""
    positive = positive_eigenvalues(core, basis, form)
    fitting = [k for k in topics if k <= positive]
    return (whiten(core, basis, fitting[-1], form) if fitting else None), positive


def _planned(
    store: StatisticsSource,
    numbers: Sequence[int],
    run: Run,
    method: str,
    held: int,
    refine: int | Literal["auto"],
) -> tuple[RefitPlan, dict[int, StreamingMomentsError]]:
    """Plan memory for the largest number of topics that is possible.

    The basis and the memory limit this number. Also returns an error for each larger number.
    """
    plans: list[RefitPlan] = []
    refused: dict[int, StreamingMomentsError] = {}
    for k in numbers:
        try:
            require_columns(k, store.basis)
            rounds = ROUNDS if refine == "auto" else refine
            options = TopicOptions(topics=k, method=method, refine=rounds)
            plans.append(
                plan_refit(
                    store.layout,
                    TopicModel,
                    options,
                    workers=run.cluster.workers,
                    threads=run.cluster.threads,
                    memory=run.cluster.memory,
                    held=held,
                )
            )
        except (NotIdentifiable, BoundExceeded) as error:
            refused[k] = error
    if not plans:
        raise refused[numbers[0]]
    return plans[-1], refused


def _whitened(
    rows: OnCluster, numbers: Sequence[int], forms: Sequence[Form]
) -> list[tuple[Future[Any], int]]:
    """Return a whitening on a worker, and the number of positive eigenvalues, for each form.

    Each form belongs to one alpha0.
    """
    cores = rows.each("reading row blocks", core_rows)
    spaces: list[tuple[Future[Any], int]] = []
    if not rows.whole_core:
        core = core_by_rows(rows, cores)
        for form in forms:
            whitening, positive = whiten_most_of(core, rows.basis, numbers, form)
            spaces.append((rows.shared(whitening), positive))
        return spaces
    # compute the whitenings one after another, because each holds the core moments twice
    for form in forms:
        most = rows.once(
            "whitening", whiten_most, cores, rows.lengths.whole, rows.basis, numbers, form
        )
        whitened, found = (rows.once("whitening", itemgetter(place), most) for place in (0, 1))
        spaces.append((whitened, rows.value(found)))
    return spaces


def _models(
    rows: OnCluster,
    plan: RefitPlan,
    numbers: Sequence[int],
    whitened: Future[Any],
    method: str,
    seed: int,
    refining: _Refining,
) -> Iterator[tuple[int, Fitted | StreamingMomentsError]]:
    """Fit models with one alpha0 for increasing `numbers` of topics; yield number and result."""
    most = numbers[-1]
    # A method with slices uses the slice of the third moment whose singular values are farthest
    # apart. This slice depends on the number of topics, so each number needs its own sums. Other
    # methods share the sums of the largest number.
    gathered = {
        k: rows.summed(
            *("whitened slices", leading_evidence, whitened, k, method),
            nbytes=tensor_sums_bytes(rows.basis.columns, k),
        )
        for k in (numbers if decomposition_called(method).needs_slices else [most])
    }
    # solve for the largest numbers first, because they take longest
    falling = numbers[::-1]
    solved: list[Future[Any]] = rows.calls(
        "rotations",
        on_aligned,
        [(solve_leading, gathered.get(k, gathered[most]), whitened, k, seed) for k in falling],
        keep=True,
        in_flight=rows.run.cluster.workers * plan.solves_in_flight,
    )
    del gathered
    # directions and models stay on the workers; this process gets only descriptions of them
    refusals: list[str] = rows.calls("rotations", refusal_of, [(one,) for one in solved])
    ready: dict[int, Future[Any]] = {}
    for k, one, refusal in zip(falling, solved, refusals, strict=True):
        if refusal:
            yield k, NotIdentifiable(refusal)
        else:
            ready[k] = one
    for group in _groups(rows, plan, sorted(ready)):
        own = [ready[k] for k in group]
        parts = rows.each("topic rows", leading_rows, whitened, own)
        made = rows.once(
            "finishing", finish_leading, parts, whitened, own, rows.lengths, rows.basis, method
        )
        del parts
        told = rows.value(rows.once("finishing", numbers_of, made))
        for place, (k, spent) in enumerate(zip(group, told, strict=True)):
            if isinstance(spent, NotIdentifiable):
                yield k, spent
            else:
                model, seconds = refining(rows.once("finishing", model_at, made, place))
                core = rows.basis.core
                fitted = rows.once("coherence", Fitted.of, model, core, spent + seconds)
                yield k, rows.value(fitted)


def _groups(rows: OnCluster, plan: RefitPlan, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of numbers of topics; all models of a group fit into memory together."""
    if not numbers:
        return
    column = 8 * _ROW_COPIES * rows.basis.n_words
    # the plan already includes the topics of the largest model twice; what it leaves free of the
    # memory can hold more models
    room = max(2 * numbers[-1], (rows.run.cluster.memory - plan.peak_bytes) // column)
    group: list[int] = []
    for k in numbers:
        if group and sum(group) + k > room:
            yield group
            group = []
        group.append(k)
    yield group


def _pairs(rows: OnCluster, store: StatisticsSource, models: Sequence[Fitted]) -> WordPairs | None:
    """Return co-document counts of the top words of all models, if the store has such counts."""
    if not store.codocuments or store.basis.core < 2:
        return None
    return count_pairs(rows, np.unique(np.concatenate([model.words for model in models])))

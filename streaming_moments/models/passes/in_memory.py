"""Passes over records in memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, TypeVar

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.models.passes.families import passes_of
from streaming_moments.models.passes.polishing import PASSES, M
from streaming_moments.models.passes.stopping import AUTO
from streaming_moments.models.provenance import Polishing
from streaming_moments.progress import Report, reporter, unreported
from streaming_moments.statistics.counts.batch import CountBatch, require_batch
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.views.records import ViewBatch

T = TypeVar("T", bound=Model)
Records = CountBatch | SymbolBatch | ViewBatch
"""Batches that `polished` reads: documents or sets, sequences, records of views."""


@checked
def polished(
    model: M,
    batches: Records | Iterable[Records],
    passes: int | Literal["auto"] = PASSES,
    alpha: bool = False,
    threads: int = 1,
    verbose: int | bool = 0,
) -> M:
    """Polish a model by passes of expectation maximisation over its records.

    A pass reads each document with the current topics, and makes new topics from the expected
    number of tokens of each word in each topic. How it finds these numbers depends on the model:

    - LDA uses collapsed variational Bayes (CVB0; Asuncion, Welling, Smyth, Teh 2009). It makes at
      most 15 sweeps of `r_ij ~ m_ij (alpha_j + N_j - r_ij)`, fewer if a document converges.
    - Single topics, Poisson mixtures, sets of features and views use the posterior of the topic,
      component or state.
    - Chains use Baum-Welch (Baum, Petrie, Soules, Weiss 1970) over stretches of 128 symbols.

    Parameters
    ----------
    model : TopicModel, BernoulliMixture, HiddenMarkovModel or MultiViewMixture
        Start of the passes; topics keep their order.
    batches : CountBatch, SymbolBatch, ViewBatch or iterable of them
        The documents, sets, sequences or records of views; an iterable is read once in each pass,
        so it must not be an iterator.
    passes : int or "auto"
        One or two are enough for good topics; 0 returns the model itself. "auto" stops when a pass
        changes the topics by less than half of their error bars, after at most 20 passes. For
        models other than topics, it stops when all later passes together would change the states by
        less than a twentieth of their error bars. For chains, this limit is a hundredth, and "auto"
        makes at most 100 passes.
    alpha : bool
        Whether each pass ends with a step of Minka's fixed point of alpha (2000), in which
        digamma is linear between whole counts. The step overestimates alpha, even with planted
        topics, and more with each pass. `alpha0="auto"` of a fit comes nearer to the true value.
    threads : int
        Threads over the documents of a batch; any number gives the same bits.
    verbose : int
        1 prints a line for each step, with its seconds; 0 prints none.

    Raises
    ------
    InvalidInput
        The model has no passes over documents or sets, alpha is requested for single topics, or a
        number is out of range.
    ForeignStatistics
        A batch has another vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> near = np.array([[0.6, 0.2], [0.3, 0.2], [0.1, 0.6]])
    >>> model = TopicModel.from_topics(near, np.array([0.5, 0.5]), alpha0=0.1)
    >>> batch = CountBatch.from_csr([[2, 2, 0], [0, 0, 4]] * 50)
    >>> polished(model, batch).topics.round(1)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 1. ]])
    """
    if passes_of(type(model)).of_rows:
        raise InvalidInput(
            f"model {model.name} reads rows of numbers; polish it by the parameter `polish` of "
            "MomentGaussianMixture or MomentFactors"
        )
    if hasattr(batches, "dtype"):  # a SciPy matrix is not a list of batches: refuse it
        require_batch(batches)
    given = [batches] if isinstance(batches, Records) else batches
    report = reporter("polished", verbose)
    return passes_over(model, None, given, passes, alpha, threads, report)


def passes_over(
    model: T,
    foundation: Any,
    batches: Iterable[Any],
    passes: int | Literal["auto"],
    alpha: bool = False,
    threads: int = 1,
    report: Report = unreported,
) -> T:
    """Do as `polished` does, for any family of models; batches have the type that its reader takes.

    Calls `report` after each pass. Models of counts need no `foundation`.
    """
    family = passes_of(type(model))
    most = family.number(passes)
    if isinstance(most, str) or most < 0 or threads < 1:
        raise InvalidInput(
            f"passes is {passes} and threads is {threads}; give at least 0 passes and 1 thread"
        )
    family.require(model, alpha)
    polishing: Any = family.start(model) if most else model
    before: Any = None
    for number in range(1, most + 1):
        earlier, before, reader = before, polishing, family.reader(polishing, foundation)
        total = _expected(reader, family.cut(batches), family.sums, threads)
        polishing = family.after(number, before, total, foundation, alpha)
        note = Polishing("", number, alpha, 0, total.documents, total.tokens)
        polishing = replace(polishing, polishing=note)
        report(f"pass {number} of at most {most}: {total.documents:,} records")
        if passes == AUTO and family.settled(before, polishing, earlier):
            break
    done: T = polishing
    return done


def _expected(reader: Any, batches: Iterable[Any], sums: Any, threads: int) -> Any:
    totals = [sums.zero(reader.model) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            shares = [batch.documents * part // threads for part in range(threads + 1)]
            cut = [batch.select(*ends) for ends in pairwise(shares)]
            totals = list(pool.map(reader.add, cut, totals))
    whole, *others = totals
    for other in others:
        whole = whole.add(other)
    return whole

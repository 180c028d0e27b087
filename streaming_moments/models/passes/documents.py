"""Passes over documents in memory."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput
from streaming_moments.models.passes.families import AUTO, MOST_PASSES, passes_of, settled
from streaming_moments.models.passes.polishing import (
    PASSES,
    ExpectedCounts,
    M,
    Reader,
    improved,
    require_alpha,
)
from streaming_moments.models.provenance import Polishing
from streaming_moments.statistics.counts.batch import CountBatch


@checked
def polished(
    model: M,
    batches: CountBatch | Iterable[CountBatch],
    passes: int | Literal["auto"] = PASSES,
    alpha: bool = False,
    threads: int = 1,
) -> M:
    """Polish a model by passes of expectation maximisation over documents.

    A pass reads each document with the current topics and makes new ones from the expected tokens
    of each word in each topic. LDA: by collapsed variational Bayes (CVB0; Asuncion, Welling, Smyth,
    Teh 2009), at most 15 sweeps of `r_ij ~ m_ij (alpha_j + N_j - r_ij)`, fewer if a document
    converges. Single topic and Poisson: by the posterior of its topic.

    Parameters
    ----------
    model : TopicModel
        Start of the passes; topics keep their order.
    batches : CountBatch or iterable of CountBatch
        The documents; an iterable is read once in each pass, so it must not be an iterator.
    passes : int or "auto"
        One or two are enough for good topics; 0 returns the model itself. "auto" stops when a pass
        changes the topics by less than half of their error bars, at most 20.
    alpha : bool
        Whether each pass ends with a step of Minka's fixed point of alpha (2000), in which
        digamma is linear between whole counts.
    threads : int
        Threads over the documents of a batch; any number gives the same bits.

    Raises
    ------
    InvalidInput
        The model has no passes over documents, alpha is requested for single topics, or the number
        of passes is negative.
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
    most = MOST_PASSES if passes == AUTO else passes
    if isinstance(most, str) or most < 0 or threads < 1:
        raise InvalidInput(
            f"{passes} passes by {threads} threads; give at least 0 passes and 1 thread"
        )
    if not passes_of(type(model)).of_documents:
        raise InvalidInput(f"model {model.name} has no passes over documents; give a topic model")
    require_alpha(model, alpha)
    given = [batches] if isinstance(batches, CountBatch) else batches
    for number in range(1, most + 1):
        expected, before = _expected(Reader(model), given, threads), model
        model = improved(model, expected, alpha)
        note = Polishing("", number, alpha, 0, expected.documents, expected.tokens)
        model = replace(model, polishing=note)
        if passes == AUTO and settled(before, model):
            break
    return model


def _expected(reader: Reader, batches: Iterable[CountBatch], threads: int) -> ExpectedCounts:
    totals = [ExpectedCounts.zero(reader.model) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            shares = [batch.documents * part // threads for part in range(threads + 1)]
            parts = [batch.select(*ends) for ends in pairwise(shares)]
            totals = list(pool.map(reader.add, parts, totals))
    whole = totals[0]
    for other in totals[1:]:
        whole = whole.add(other)
    return whole

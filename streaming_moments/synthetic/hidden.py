"""Records in three views and sequences drawn from known models with hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.deprecation import renamed_fields
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.synthetic.checks import drawn


@dataclass(frozen=True, eq=False)
class SyntheticViews:
    """Records in three views, and the model from which they were drawn.

    Parameters
    ----------
    batch : ViewBatch
        The counts, without vocabularies.
    tables : tuple of (n, k) float64
        For each view, the distribution of its words in each state.
    weights : (k,) float64
        Shares of the states.
    states : (records,) int64
        The state of each record. If a record has several states, the one with the largest share.
    """

    batch: ViewBatch
    tables: tuple[NDArray[np.float64], ...]
    weights: NDArray[np.float64]
    states: NDArray[np.int64]

    __repr__ = short_repr


@drawn
def view_records(
    number: int,
    sizes: tuple[int, int, int] = (30, 40, 50),
    k: int = 4,
    mean: float | None = 5.0,
    alpha0: float = 0.0,
    seed: int = 0,
) -> SyntheticViews:
    """Draw records whose views are independent given a state, or a Dirichlet mixture of states.

    Parameters
    ----------
    number : int
        Number of records.
    sizes : tuple of int
        Number of words in the vocabulary of each view.
    k : int
        Number of states.
    mean : float, optional
        Mean of the Poisson number of words in a view of a record; None gives each view one word.
    alpha0 : float
        Sum of the Dirichlet parameters of the mixtures; with 0, each record has one state.
    seed : int
        Seed of the model and the records.

    Examples
    --------
    >>> view_records(10, sizes=(3, 4, 5), k=2).batch.documents
    10
    """
    rng = np.random.default_rng(seed)
    tables = tuple(rng.dirichlet(np.full(n, 0.2), k).T for n in sizes)
    weights = rng.dirichlet(np.full(k, 5.0))
    if alpha0:
        shares = rng.dirichlet(alpha0 * weights, number)
    else:
        shares = np.eye(k)[rng.choice(k, number, p=weights)]
    views = []
    for table in tables:
        lengths = np.ones(number, int) if mean is None else rng.poisson(mean, number)
        chances = np.cumsum(shares @ table.T, axis=1)
        records = np.repeat(np.arange(number), lengths)
        drawn = rng.random(records.size) * chances[records, -1]
        words = (chances[records] <= drawn[:, None]).sum(axis=1)
        shape = number, len(table)
        views.append(CountBatch.from_entries(records, words, None, shape))
    return SyntheticViews(ViewBatch(*views), tables, weights, shares.argmax(axis=1))


@renamed_fields("0.3.0", "0.4.0", moves="transition")
@dataclass(frozen=True, eq=False)
class SyntheticSequences:
    """Sequences of a hidden Markov chain, and the model from which they were drawn.

    Parameters
    ----------
    batch : SymbolBatch
        The symbols.
    emission : (n, k) float64
        Distribution of the symbols of each state.
    transition : (k, k) float64
        Distribution of the next state, with a column for each current state.
    start : (k,) float64
        Distribution of the first state.
    states : (symbols,) int64
        The state of each symbol.
    """

    batch: SymbolBatch
    emission: NDArray[np.float64]
    transition: NDArray[np.float64]
    start: NDArray[np.float64]
    states: NDArray[np.int64]

    __repr__ = short_repr


@drawn
def markov_sequences(
    number: int,
    length: int = 100,
    n_symbols: int = 50,
    k: int = 5,
    seed: int = 0,
    draw: int = 0,
) -> SyntheticSequences:
    """Draw sequences of one length; `seed` determines the model, and `draw` the sequences.

    Examples
    --------
    >>> markov_sequences(3, length=4, n_symbols=6, k=2).batch.symbols.size
    12
    """
    rng = np.random.default_rng(seed)
    emission = rng.dirichlet(np.full(n_symbols, 0.1), k).T
    transition = 0.3 * rng.dirichlet(np.full(k, 0.5), k).T + 0.7 * np.eye(k)
    start = rng.dirichlet(np.ones(k))
    rng = np.random.default_rng([seed, draw])
    chances = np.cumsum(emission, axis=0), np.cumsum(transition, axis=0)
    states = np.empty((number, length), dtype=np.int64)
    symbols = np.empty((number, length), dtype=np.int32)
    states[:, 0] = rng.choice(k, number, p=start)
    for place in range(length):
        if place:
            states[:, place] = _drawn(chances[1][:, states[:, place - 1]], rng)
        symbols[:, place] = _drawn(chances[0][:, states[:, place]], rng)
    offsets = np.arange(number + 1, dtype=np.int64) * length
    batch = SymbolBatch.whole(offsets, symbols.ravel())
    return SyntheticSequences(batch, emission, transition, start, states.ravel())


def _drawn(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the index of a row by each column of cumulative probabilities."""
    below = chances <= rng.random(chances.shape[1]) * chances[-1]
    return np.asarray(below.sum(axis=0), dtype=np.int64)

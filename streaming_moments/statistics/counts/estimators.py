"""Unbiased, dense estimates of the moments of a corpus in memory, for small vocabularies."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.moments import Moments
from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch, require_batch
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.room import finest_even
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights

Estimator = Literal["even", "pooled", "per-document", "three-words"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)

# Largest vocabulary: a third moment of (512, 512, 512) float64 takes 1 GiB.
_MOST_WORDS = 512
# Documents are processed in parts with at most this many dense counts: 32 MB in float64.
_CELLS = 1 << 22


def estimate(batch: CountBatch, estimator: Estimator = "even", seed: int = 0) -> Moments:
    """Estimate moments of documents in memory by a named estimator.

    - "even": length weights, as a store has them by default.
    - "pooled": all pairs and triples count once (Ruffini et al. 2018, Theorem 1).
    - "per-document": each document counts once (Zou et al. 2013).
    - "three-words": three random words of each document.

    Parameters
    ----------
    batch : CountBatch
        Documents over a vocabulary of at most 512 words.
    estimator : str
        A name of `ESTIMATORS`.
    seed : int
        Seed of "three-words"; the other estimators do not use it.

    Returns
    -------
    Moments
        Moments for `decompose` if each document has one topic; for LDA, convert them first by
        `dirichlet_moments`.

    Raises
    ------
    InvalidInput
        The estimator is unknown, or no document has three words.
    BoundExceeded
        The vocabulary has more than 512 words.

    Examples
    --------
    >>> estimate(CountBatch.from_csr([[2, 1], [0, 3]]), "per-document").M1.round(3)
    array([0.333, 0.667])
    """
    require_batch(batch)
    if estimator == "even":
        return weighted_moments(batch, finest_even(batch))
    if estimator == "pooled":
        return pooled_moments(batch)
    if estimator == "per-document":
        return per_document_moments(batch)
    if estimator == "three-words":
        return three_word_moments(batch, seed)
    raise InvalidInput(f'estimator is "{estimator}"; choose {", ".join(ESTIMATORS)}')


def pooled_moments(batch: CountBatch) -> Moments:
    """Estimate moments pooled over all positions (Ruffini et al. 2018, Theorem 1).

    With x the word counts of a document and c their sum, the estimator counts ordered pairs and
    triples of distinct positions over all documents,

        M1 = sum x / C1,   M2 = sum (x x' - diag x) / C2,   M3 likewise / C3,

    with `C1 = sum c`, `C2 = sum c(c-1)`, `C3 = sum c(c-1)(c-2)`. A document with two words counts
    in M1 and M2, and a document with a single word only in M1. Neither has triples, so they add
    nothing to M3.

    The moments are symmetric. For LDA they still need `dirichlet_moments`. Raises InvalidInput if
    no document has three words, and BoundExceeded for a vocabulary of more than 512 words.

    Examples
    --------
    >>> pooled_moments(CountBatch.from_csr([[2, 1]])).M2.round(3)
    array([[0.333, 0.333],
           [0.333, 0.   ]])
    """
    return weighted_moments(batch, POOLED)


def weighted_moments(batch: CountBatch, weights: LengthWeights) -> Moments:
    """Estimate moments as `pooled_moments` does, but with weight w(c) for a document of length c.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[2, 1], [0, 4]])
    >>> weighted_moments(batch, LengthWeights(np.array([4, 4, 4, 4, 1]))).M2.round(3)
    array([[0.222, 0.222],
           [0.222, 0.333]])
    """
    _require_triples(batch)
    lengths, own = LengthHistogram.of(batch.lengths, weights), weights.at(batch.lengths)
    M1, M2, M3 = _distinct_positions(batch, *[own.astype(np.float64)] * 3)
    return Moments(M1 / lengths.C1, M2 / lengths.C2, M3 / lengths.C3)


def per_document_moments(batch: CountBatch) -> Moments:
    """Estimate moments with equal weights of all documents (Zou, Hsu, Parkes, Adams 2013).

    With x the word counts of a document and c their sum, M1 is the mean over the N documents of
    `x / c`, and M2 that of `(x x' - diag x) / (c(c-1))`. M3 is the mean of the triples of a
    document, divided by `c(c-1)(c-2)`. Documents with fewer than three words are left out of all
    three moments, so that all moments use the same documents.

    The moments are symmetric. Raises the errors of `pooled_moments`.

    Examples
    --------
    >>> per_document_moments(CountBatch.from_csr([[2, 1], [0, 4], [1, 0]])).M1.round(3)
    array([0.333, 0.667])
    """
    _require_triples(batch)
    c = batch.lengths.astype(np.float64)
    enough = c >= 3
    # replace lengths below 3, whose documents have weight 0, to avoid a division by zero
    kept = np.where(enough, c, 3.0)
    shares = enough / enough.sum()
    singles, pairs = shares / kept, shares / (kept * (kept - 1))
    return Moments(*_distinct_positions(batch, singles, pairs, pairs / (kept - 2)))


def three_word_moments(batch: CountBatch, seed: int = 0) -> Moments:
    """Estimate moments from three random words of each document (Ruffini et al. 2018, Remark 3).

    If `e_1, e_2, e_3` are the indicators of the three words, the moments are the means of `e_1`,
    `e_1 e_2'` and `e_1 (x) e_2 (x) e_3`. Words of a document are exchangeable, so any three words
    will do. Counts have no order, so three distinct positions are drawn at random. Documents of
    fewer than three words are left out.

    The moments are symmetric only in expectation; `symmetrized` averages all six orders of the
    words. The seed determines the positions. Raises the errors of `pooled_moments`.

    Examples
    --------
    >>> three_word_moments(CountBatch.from_csr([[3, 0], [0, 5]])).M3.diagonal().diagonal()
    array([0.5, 0.5])
    """
    _require_triples(batch)
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be at least 0")
    one, two, three = _drawn_words(batch, np.random.default_rng(seed))
    n, share = batch.n_words, 1 / one.size
    M1, M2, M3 = np.zeros(n), np.zeros((n, n)), np.zeros((n, n, n))
    np.add.at(M1, one, share)
    np.add.at(M2, (one, two), share)
    np.add.at(M3, (one, two, three), share)
    return Moments(M1, M2, M3)


def _drawn_words(batch: CountBatch, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw words at three distinct positions of each document that has three words or more.

    Return (3, such documents) words, in the order in which the positions were drawn.
    """
    starts = np.cumsum(batch.lengths) - batch.lengths
    enough = batch.lengths >= 3
    starts, lengths = starts[enough], batch.lengths[enough]
    first = rng.integers(0, lengths)
    second = rng.integers(0, lengths - 1)
    second += second >= first
    third = rng.integers(0, lengths - 2)
    third += third >= np.minimum(first, second)
    third += third >= np.maximum(first, second)
    # entry e covers the positions from ends[e - 1] to ends[e] - 1
    ends = np.cumsum(batch.counts, dtype=np.int64)
    positions = starts + np.stack([first, second, third])
    return batch.words[np.searchsorted(ends, positions, side="right")]


def _distinct_positions(
    batch: CountBatch,
    singles: NDArray[np.float64],
    pairs: NDArray[np.float64],
    triples: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return weighted sums over documents of words, and of pairs and triples of distinct positions.

    With counts x of a document, the product `x_i x_h x_l` includes triples in which positions
    coincide, so these are subtracted. The sums are exact if all numbers are whole and below 2^53.
    """
    n = batch.n_words
    M1, M2, M3 = np.zeros(n), np.zeros((n, n)), np.zeros((n, n, n))
    # sums of x x' and of x with the weights of triples, to subtract those with equal positions
    raw, words = np.zeros((n, n)), np.zeros(n)
    step = max(_CELLS // max(n, 1), 1)
    for start in range(0, batch.documents, step):
        part = slice(start, min(start + step, batch.documents))
        x = batch.select(part.start, part.stop).to_csr().toarray().astype(np.float64)
        M1 += singles[part] @ x
        M2 += (x * pairs[part, None]).T @ x - np.diag(pairs[part] @ x)
        raw += (x * triples[part, None]).T @ x
        words += triples[part] @ x
        for word in range(n):
            holding = x[:, word] > 0
            mine = x[holding]
            M3[word] += (mine * (triples[part][holding] * mine[:, word])[:, None]).T @ mine
    i = np.arange(n)
    M3[i, i, :] -= raw
    M3[i, :, i] -= raw
    M3[:, i, i] -= raw
    M3[i, i, i] += 2 * words
    return M1, M2, M3


def _require_triples(batch: CountBatch) -> None:
    if batch.n_words > _MOST_WORDS:
        raise BoundExceeded(
            f"a dense third moment of {batch.n_words} words takes {8 * batch.n_words**3:,} bytes; "
            f"keep at most {_MOST_WORDS} words, or use MomentStatistics and fit"
        )
    longest = int(batch.lengths.max()) if batch.documents else 0
    if longest < 3:
        raise InvalidInput(
            f"none of {batch.documents} documents has three words (the longest has {longest}); "
            "the third moment needs documents of at least three vocabulary words"
        )

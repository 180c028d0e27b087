"""Sketches: integer bases of views, from co-occurrences of words in a pilot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.krylov import leading_eigenpairs
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.numerics.seeds import generator_of
from streaming_moments.statistics.counts.basis import Basis, with_random_columns
from streaming_moments.statistics.counts.vocabulary import Vocabulary

# A vocabulary of up to this many words gets no sketch: the sums then are the table of all triples.
WHOLE = 128
_COLUMNS = 22
_MOST_CORE = 1 << 16
_RANDOM = 2  # number of random columns of +-1, which capture states that the pilot does not have
_SCALE = 127
# This number is added to each word count, so that rare words do not dominate. It was chosen by
# measurements.
_BESIDE = 30.0
# Entries of a column are clipped at this many times their root mean square, so that a rare word
# does not take the whole range of int8. The number was chosen by measurements.
_CLIP = 4.0
_NEGLIGIBLE = 1e-9
_DENSE = 512
_TOLERANCE, _MOST_BLOCKS = 1e-4, 30
_DRAWS = 10


def sketch_of(
    together: sp.csr_array,
    words: Vocabulary,
    columns: int | None = None,
    seed: int = 0,
    most_blocks: int = _MOST_BLOCKS,
) -> Basis:
    """Make the basis of one view from its co-occurrences with the other views in a pilot.

    The basis has the leading singular vectors of the co-occurrences, and random columns.

    The vectors are the left singular vectors of `D C E`. C is `together`, `D = (row sums +
    30)^-1/2`, and E is the same for columns. The vectors are scaled by D once more, clipped at 4
    times their root mean square and rounded to int8. Then 2 random columns of +-1 are appended.

    together : (n, m) sparse, how often words of the view and of the other views occur together in a
        pilot
    words : vocabulary of the view; only its core words have a row
    columns : number of columns; a good choice is twice the number of states plus two. The default
        is 22, or the identity for up to 128 words, which also allows refinement.
    most_blocks : if there are many words, the eigensolver multiplies all columns at most this many
        times

    Examples
    --------
    >>> words = Vocabulary(("law", "sea", "ship"), core=3)
    >>> sketch_of(sp.csr_array(np.ones((3, 3))), words).columns
    3
    """
    if columns is not None and columns < 1:
        raise InvalidInput(f"the sketch has {columns} columns; give at least 1")
    wanted = columns or _COLUMNS
    if wanted >= words.core or (columns is None and words.n_words <= WHOLE):
        # use the identity: it loses nothing, and has no more columns than requested
        return Basis(np.eye(words.core, dtype=np.int8), words.n_words, words.fingerprint)
    pairs = sp.csr_array(together[: words.core], dtype=np.float64)
    if not pairs.nnz:
        raise InvalidInput(
            "no words of two views occur together in the pilot; give a larger pilot, or other "
            "columns"
        )
    rng = generator_of(seed)
    leading = _leading(pairs, max(1, wanted - _RANDOM), rng, most_blocks)
    matrix = with_random_columns(leading, wanted - leading.shape[1], rng)
    return Basis(matrix, words.n_words, words.fingerprint)


def core_of(n_words: int) -> int:
    """Return how many words of a vocabulary have a row in its sketch."""
    return min(n_words, _MOST_CORE)


def _leading(
    pairs: sp.csr_array, number: int, rng: np.random.Generator, most_blocks: int
) -> NDArray[np.int8]:
    """Return (core, number) scaled singular vectors as int8, or fewer if the pilot has fewer."""
    rows = (np.asarray(pairs.sum(axis=1)).ravel() + _BESIDE) ** -0.5
    columns = (np.asarray(pairs.sum(axis=0)).ravel() + _BESIDE) ** -0.5
    scaled = sp.diags_array(rows) @ pairs @ sp.diags_array(columns)
    core = scaled.shape[0]
    if core <= _DENSE:
        values, vectors = np.linalg.eigh((scaled @ scaled.T).toarray())
    else:
        start = np.linalg.qr(rng.standard_normal((core, number)))[0].astype(np.float64)
        values, vectors = leading_eigenpairs(
            lambda block: np.asarray(scaled @ (scaled.T @ block)), start, _TOLERANCE, most_blocks
        )
    order = np.argsort(-values)[:number]
    order = order[values[order] > _NEGLIGIBLE * values[order[0]]]
    vectors = vectors[:, order]
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    turned = vectors * np.sign(peaks) * rows[:, None]
    most = _CLIP * np.sqrt((turned**2).mean(axis=0))
    clipped = np.clip(turned, -most, most)
    rounded = np.rint(_SCALE * clipped / np.abs(clipped).max(axis=0))
    return np.asarray(rounded, dtype=np.int8)

"""Basis: integer matrix Q that sketches the third moment, and length weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.krylov import leading_eigenpairs
from streaming_moments.numerics.seeds import generator_of
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.batch import CountBatch, require_batch
from streaming_moments.statistics.counts.kernels import row_kernels
from streaming_moments.statistics.counts.lengths.room import even_with_room, finest_even
from streaming_moments.statistics.counts.lengths.weights import (
    POOLED,
    WEIGHTINGS,
    LengthWeights,
    Weighting,
)
from streaming_moments.statistics.counts.tables.columns import TableColumns

# Largest absolute entry of Q. Rounding to +-31 does not measurably change the L1 error of topics:
# it is .1163, as with +-127; with +-3 it is .1181. With +-31, 17 times as many documents fit below
# 2^62 as with +-127. On real text +-31 captures 97% of the spectrum, and +-15 captures 93%.
_SCALE = 31
DEFAULT_CORE = 4096
# Tolerance of the eigensolver relative to the eigenvalues of the pilot. The error of the pilot
# itself is a hundred times larger.
_TOLERANCE = 1e-3
_MOST_BLOCKS = 8
# Random columns of +-1 are drawn at most this many times. With few words and many columns, they can
# be linearly dependent, and are then drawn again.
_DRAWS = 20


@dataclass(frozen=True, eq=False)
class Basis:
    """Integer basis Q, with a row for each core word and s columns, and length weights.

    Parameters
    ----------
    matrix : (core, s) int8
        Q; its columns must be linearly independent.
    n_words : int
        Number of words n of the vocabulary, `n >= core`.
    vocabulary : str
        Fingerprint of the vocabulary; empty without one.
    weights : LengthWeights
        Weight of a document by its length.
    table : TableColumns, optional
        Columns whose values are the core words, if documents are rows of a table.

    Raises
    ------
    InvalidInput
        The matrix has another type or shape, or its columns are dependent.

    Examples
    --------
    >>> Basis(np.array([[1, 0], [1, 1], [0, 1]], dtype=np.int8), n_words=5).columns
    2
    """

    matrix: NDArray[np.int8]
    n_words: int
    vocabulary: str = ""
    weights: LengthWeights = POOLED
    table: TableColumns | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        matrix = self.matrix
        if matrix.dtype != np.int8 or matrix.ndim != 2 or matrix.shape[1] < 1:
            raise InvalidInput(
                f"a basis is a (core, s) matrix of int8, got {matrix.shape} of {matrix.dtype}"
            )
        if matrix.shape[0] > self.n_words:
            raise InvalidInput(
                f"the basis has {matrix.shape[0]} rows, more than the {self.n_words} words; give "
                "fewer rows"
            )
        if not _independent(matrix):
            raise InvalidInput(
                f"the {matrix.shape[1]} columns of the basis are linearly dependent; "
                "ask for fewer topics or give a larger pilot"
            )
        if self.table is not None and self.table.n_words != matrix.shape[0]:
            raise InvalidInput(
                f"the table has {self.table.n_words} categories, but the basis has "
                f"{matrix.shape[0]} rows; give a basis with a row for each category"
            )
        matrix.setflags(write=False)

    def with_words(self, n_words: int, vocabulary: str) -> Basis:
        """Return a basis with this matrix for a vocabulary with other words outside the core."""
        return replace(self, n_words=n_words, vocabulary=vocabulary)

    @property
    def core(self) -> int:
        """Number of core words: rows of Q."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns s: the largest number of topics of a refit."""
        return int(self.matrix.shape[1])

    @property
    def packed(self) -> int:
        """Number of entries `s (s + 1) / 2` in the upper triangle of an s x s matrix."""
        return self.columns * (self.columns + 1) // 2

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, as 64 hexadecimal digits, of all that defines the basis.

        These are the matrix, n, the vocabulary, weights unless all are 1, and the table if there is
        one.
        """
        head = f"{self.matrix.shape} {self.n_words} {self.vocabulary} "
        more = b"" if self.weights.is_pooled else b" " + self.weights.table.tobytes()
        if self.table is not None:
            more += b" " + json.dumps(self.table.to_json(), ensure_ascii=True).encode()
        return hashlib.sha256(head.encode() + self.matrix.tobytes("C") + more).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Basis):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @classmethod
    def of_table(cls, table: TableColumns, vocabulary: str = "") -> Basis:
        """Return the identity as the basis of a table, so that no pair or triple is projected.

        Examples
        --------
        >>> Basis.of_table(TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])).columns
        4
        """
        identity = np.eye(table.n_words, dtype=np.int8)
        return cls(identity, table.n_words, vocabulary, table=table)

    @classmethod
    @checked
    def from_pilot(
        cls,
        batch: CountBatch,
        max_topics: int = 32,
        seed: int = 0,
        core: int | None = None,
        length_weights: Weighting = "even",
    ) -> Basis:
        """Make a basis of the leading eigenvectors of a pilot's pair counts, and random columns.

        The basis has `ceil(1.5 max_topics)` eigenvectors, each scaled to +-31 and rounded to int8.
        Its `max(2, max_topics / 8)` random columns of +-1 capture topics that are absent from the
        pilot.

        Parameters
        ----------
        batch : CountBatch
            Pilot sample. With about 2000 passages or more, fitted topics are as precise as with
            exact eigenvectors, which a second pass over all documents would give.
        max_topics : int
            Number of topics for which the sketch is accurate.
        seed : int
            Seed of the random columns and the start of the eigensolver.
        core : int, optional
            Number of core words; by default that of all words, but at most 4096.
        length_weights : {"even", "pooled"}
            "even" down-weights long documents by `LengthWeights.even`, up to twice the length of
            the longest document of the pilot. "pooled" gives all documents weight 1, as in
            Ruffini et al. 2018, Theorem 1. Models in which the length of a document depends on its
            topics need "pooled".

        Raises
        ------
        InvalidInput
            The pilot is not a CountBatch or has no word pairs, there are more topics than core
            words, or the length weights are unknown.

        Examples
        --------
        >>> pilot = CountBatch.from_csr(np.random.default_rng(0).poisson(1.0, (50, 12)))
        >>> basis = Basis.from_pilot(pilot, max_topics=3)
        >>> basis.core, basis.columns
        (12, 7)
        """
        require_batch(batch)
        core = min(batch.n_words, DEFAULT_CORE) if core is None else core
        if not 1 <= core <= batch.n_words:
            raise InvalidInput(
                f"core is {core}; it must be 1 to {batch.n_words}, the number of words"
            )
        if max_topics < 1:
            raise InvalidInput(f"max topics is {max_topics}; it must be at least 1")
        if max_topics > core:
            raise InvalidInput(
                f"{max_topics} topics cannot be separated by {core} core words",
                f"give at most {core} by {{create.max_topics}}, or count more words by "
                "{create.vocabulary_size}, {create.core} or {create.min_documents}",
            )
        if length_weights not in WEIGHTINGS:
            raise InvalidInput(
                f'length weights are "{length_weights}"; choose {" or ".join(WEIGHTINGS)}'
            )
        even = length_weights == "even"
        weights = finest_even(batch) if even else POOLED
        rng = generator_of(seed)
        random_columns = max(2, max_topics // 8)
        leading_columns = ceil(1.5 * max_topics)
        if leading_columns + random_columns >= core:
            # there would be as many columns as words, so use the identity, which loses nothing
            matrix = np.eye(core, dtype=np.int8)
            weights = even_with_room(batch, matrix) if even else POOLED
            return cls(matrix, batch.n_words, batch.vocabulary, weights)
        vectors = _leading_eigenvectors(batch, weights, core, leading_columns, max_topics, rng)
        leading = np.rint(vectors / np.abs(vectors).max(axis=0) * _SCALE).astype(np.int8)
        matrix = with_random_columns(leading, random_columns, rng)
        # If sums could exceed 2^62 after too few documents, `even_with_room` chooses other length
        # weights. Keep the eigenvectors, because other weights would hardly change them.
        weights = even_with_room(batch, matrix) if even else POOLED
        return cls(matrix, batch.n_words, batch.vocabulary, weights)


def with_random_columns(
    leading: NDArray[np.int8], number: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Append random columns of +-1; draw them again if the columns are linearly dependent."""
    for _ in range(_DRAWS):
        random = rng.choice(np.array([-1, 1], dtype=np.int8), size=(len(leading), number))
        matrix = np.hstack([leading, random])
        if np.linalg.matrix_rank(matrix.astype(np.float64)) == matrix.shape[1]:
            break
    return matrix


def _leading_eigenvectors(
    batch: CountBatch,
    length_weights: LengthWeights,
    core: int,
    number: int,
    settled: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return (core, number) eigenvectors of the pilot's pair counts, by decreasing eigenvalue.

    The sign of an eigenvector makes its largest entry positive.
    """
    if not (batch.lengths > 1).any():
        raise InvalidInput(
            f"none of the pilot's {batch.documents} documents holds two vocabulary words; "
            "give a larger pilot or another vocabulary"
        )
    # subtract pairs of a token with itself, which are a part of the diagonal of sum x x'
    weights = length_weights.at(batch.lengths)
    weighted = batch.counts * np.repeat(weights, np.diff(batch.indptr))
    singles = np.bincount(batch.words, weighted, batch.n_words)[:core]

    def product(block: NDArray[np.float64]) -> NDArray[np.float64]:
        total, sums = -singles[:, None] * block, np.empty(block.shape[1])
        row_kernels.add_gram_product(
            batch.indptr,
            batch.words,
            batch.counts,
            weights,
            np.ascontiguousarray(block),
            sums,
            total,
        )
        return total

    if core <= 2 * number + 2 or core <= 256:
        values, vectors = np.linalg.eigh(product(np.eye(core)))
    else:
        start = np.linalg.qr(rng.standard_normal((core, number)))[0].astype(np.float64)
        values, vectors = leading_eigenpairs(product, start, _TOLERANCE, _MOST_BLOCKS, settled)
    vectors = vectors[:, np.argsort(-values)[:number]]
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signed: NDArray[np.float64] = vectors * np.sign(peaks)
    return signed


def _independent(matrix: NDArray[np.int8]) -> bool:
    """Whether the columns are linearly independent; mostly the eigenvalues of Q'Q show it."""
    columns = matrix.astype(np.float64)
    values = np.linalg.eigvalsh(columns.T @ columns)
    # If the smallest eigenvalue is far above rounding errors, it is not zero. Skip the singular
    # values then, which cost far more.
    if values[0] > np.sqrt(np.finfo(np.float64).eps) * values[-1]:
        return True
    return bool(np.linalg.matrix_rank(columns) == matrix.shape[1])

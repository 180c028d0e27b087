"""Vocabulary: terms by decreasing frequency; the first ones are the core."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr


@dataclass(frozen=True)
class Vocabulary:
    """Words `0..n-1` by decreasing frequency; words `0..core-1` are the core.

    Parameters
    ----------
    terms : tuple of str
        The n terms, all different, the most frequent first.
    core : int
        Number of core words, `1 <= core <= n`. Only core words have a row in the basis.
    policy : str, optional
        Fingerprint of the token policy that made the terms. The fingerprint of the vocabulary
        includes it.
    token_ids : tuple of int, optional
        Ids of the n words, if shards hold token ids instead of text; else None.

    Raises
    ------
    InvalidInput
        Terms repeat, the core is outside `1..n`, or token ids do not match the terms.

    Examples
    --------
    >>> vocabulary = Vocabulary(("law", "sea", "ship"), core=2)
    >>> vocabulary.n_words, vocabulary.index["sea"]
    (3, 1)
    """

    terms: tuple[str, ...]
    core: int
    policy: str = ""
    token_ids: tuple[int, ...] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not 1 <= self.core <= len(self.terms):
            raise InvalidInput(
                f"core is {self.core} but the vocabulary has {len(self.terms)} terms; "
                f"choose a core of 1 to {len(self.terms)}"
            )
        if len(set(self.terms)) != len(self.terms):
            raise InvalidInput("the vocabulary repeats a term; give each term once")
        if self.token_ids is not None and len(set(self.token_ids)) != len(self.terms):
            raise InvalidInput(
                f"{len(self.terms)} terms need as many different token ids, "
                f"got {len(set(self.token_ids))}"
            )

    @property
    def n_words(self) -> int:
        """Number of words n."""
        return len(self.terms)

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each term."""
        return {term: row for row, term in enumerate(self.terms)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (64 hexadecimal digits) of terms, core, policy and token ids."""
        content = json.dumps(
            [self.terms, self.core, self.policy, self.token_ids], ensure_ascii=True
        )
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class TermFrequencies:
    """m terms of a sample with their frequencies, in no particular order.

    word_counts : (m,) int64, number of tokens of each term
    document_frequencies : (m,) int64, number of documents with each term
    documents : number of documents in the sample
    """

    terms: Sequence[str]
    word_counts: NDArray[np.int64]
    document_frequencies: NDArray[np.int64]
    documents: int


def select_terms(
    frequencies: TermFrequencies,
    size: int,
    min_documents: int = 5,
    max_document_fraction: float = 0.5,
) -> NDArray[np.int64]:
    """Return the indices of the terms for a vocabulary, by decreasing frequency, then by term.

    The result is (n,) int64 with `1 <= n <= size`. A term must occur in at least `min_documents`
    documents of the sample, and in at most the share `max_document_fraction` of them, in (0, 1].
    Raises InvalidInput if no term is left; the message says how many terms each condition excluded.

    Examples
    --------
    >>> sample = TermFrequencies(["of", "sea", "law"], np.array([9, 4, 4]), np.array([4, 2, 2]), 4)
    >>> [sample.terms[i] for i in select_terms(sample, 10, min_documents=2)]
    ['law', 'sea']
    """
    chosen = frequent_terms(frequencies, size, min_documents, max_document_fraction)
    if chosen.size == 0:
        if not frequencies.terms:
            raise InvalidInput(
                f"none of {frequencies.documents:,} documents holds a term, so there is no "
                "vocabulary; check that they are texts with more than numbers and stop words"
            )
        rare, common = _refused(frequencies, min_documents, max_document_fraction)
        raise InvalidInput(
            "no term is left for the vocabulary: of "
            f"{of_number(len(frequencies.terms), 'term')} in "
            f"{of_number(frequencies.documents, 'document')}, {int(rare.sum()):,} occur in fewer "
            f"than {of_number(min_documents, 'document')} and {int(common.sum()):,} in more than "
            f"{max_document_fraction:.0%} of them",
            "lower the minimum ({create.min_documents}), raise the fraction "
            "({create.max_document_fraction}), or give more documents",
        )
    return chosen


def frequent_terms(
    frequencies: TermFrequencies, size: int, min_documents: int, max_document_fraction: float
) -> NDArray[np.int64]:
    """Return the same as `select_terms`, but without an error if no term is left."""
    if size < 1:
        raise InvalidInput(f"vocabulary size is {size}; it must be at least 1")
    if not 0 < max_document_fraction <= 1:
        raise InvalidInput(
            f"max document fraction is {max_document_fraction}; it must be above 0 and at most 1"
        )
    rare, common = _refused(frequencies, min_documents, max_document_fraction)
    kept = np.flatnonzero(~(rare | common))
    return np.array(_by_falling_frequency(frequencies, kept)[:size], dtype=np.int64)


def shares_left_out(
    frequencies: TermFrequencies,
    chosen: NDArray[np.int64],
    min_documents: int,
    max_document_fraction: float,
) -> dict[str, float]:
    """Return the share of all tokens that are not among the `chosen` terms, and its three parts.

    The parts are the shares of too common terms, of too rare terms, and of terms beyond the
    vocabulary size. Without tokens, all shares are 0.

    Examples
    --------
    >>> sample = TermFrequencies(["of", "sea", "ebb"], np.array([5, 3, 2]), np.array([4, 2, 1]), 4)
    >>> shares_left_out(sample, np.array([1]), 2, 0.5)
    {'outside_share': 0.7, 'common_share': 0.5, 'rare_share': 0.2, 'beyond_share': 0.0}
    """
    rare, common = _refused(frequencies, min_documents, max_document_fraction)
    counts = frequencies.word_counts
    total = max(1, int(counts.sum()))
    outside = int(counts.sum() - counts[chosen].sum())
    parts = {"outside": outside, "common": int(counts[common].sum())}
    parts["rare"] = int(counts[rare & ~common].sum())
    parts["beyond"] = outside - parts["common"] - parts["rare"]
    return {f"{name}_share": tokens / total for name, tokens in parts.items()}


def _refused(
    frequencies: TermFrequencies, min_documents: int, max_document_fraction: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the mask of the terms that are too rare, and the mask of those too common."""
    rare = frequencies.document_frequencies < min_documents
    common = frequencies.document_frequencies > max_document_fraction * frequencies.documents
    return rare, common


def _by_falling_frequency(frequencies: TermFrequencies, kept: ArrayLike) -> list[int]:
    counts, terms = frequencies.word_counts, frequencies.terms
    return sorted(np.asarray(kept).tolist(), key=lambda i: (-int(counts[i]), terms[i]))

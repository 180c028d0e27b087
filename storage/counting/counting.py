"""Count the words of texts in a column, with the same tokens as the reference tokeniser.

The reference, `tokeniser.words`, folds a whole text (for example, to lower case), and finds words
by a pattern. This module is faster: if the result is the same, it folds a document code point by
code point with a table. It folds other documents as a whole.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch, odd_documents
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokeniser import token_kernels
from streaming_moments.storage.counting.tokeniser.code_points import symbols_of
from streaming_moments.storage.counting.tokeniser.phrases import PhraseIndex
from streaming_moments.storage.counting.tokeniser.words import folded_text
from streaming_moments.storage.counting.tokenisers.base import Splitter, TokeniserFailed
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import Holds, buffers, encoded

# A document may have at most this many bytes. Its counts of words are then within int32, because a
# word with its separator has at least two bytes.
_LARGEST_DOCUMENT = 2 * np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class CountedPassages:
    """Word counts of the passages into which some documents are divided.

    batch : (passages, n) counts of the n words; passages of a document are in the same half of the
        data
    outside : (passages,) int64, number of tokens of each passage that are not in the vocabulary
    passages : (documents,) int64, number of passages of each document, at least 1
    cutting : seconds that the tokeniser took

    Examples
    --------
    >>> batch = CountBatch.from_csr([[1], [2], [3]])
    >>> counted = CountedPassages(batch, np.zeros(3, np.int64), np.array([2, 1]))
    >>> counted.documents, counted.begins, counted.summed(batch.lengths)
    (2, array([0, 2]), array([3, 3]))
    """

    batch: CountBatch
    outside: NDArray[np.int64]
    passages: NDArray[np.int64]
    cutting: float = 0.0

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.passages.size)

    def odd(self, n_words: int | None = None) -> NDArray[np.bool_]:
        """Return the (documents,) mask of the documents in the odd half.

        Which half a document is in depends on its counts of the first `n_words` words; see
        `odd_documents`.
        """
        return odd_documents(self.batch, self.passages, n_words)[self.begins]

    def halved(self, odd: NDArray[np.bool_]) -> CountedPassages:
        """Return a copy whose documents are divided into halves by the (documents,) mask `odd`."""
        return replace(self, batch=replace(self.batch, halves=np.repeat(odd, self.passages)))

    @functools.cached_property
    def begins(self) -> NDArray[np.int64]:
        """(documents,) index of the first passage of each document."""
        return np.cumsum(self.passages) - self.passages

    def summed(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Add up the numbers of the passages of each document.

        Turns (passages, ...) into (documents, ...).
        """
        return np.asarray(np.add.reduceat(numbers, self.begins, axis=0))


@dataclass(frozen=True, eq=False)
class WordIndex:
    """Hash table that finds the n words of a vocabulary, and the stop words, by their bytes.

    Make one with `of`, once for many columns.

    slots : (2^b, 2) uint64 hash table, see `token_kernels.index_keys`
    pool : (lanes,) uint64, words in lanes of 8 bytes, terms before stop words
    starts : (keys + 1,) int64, first lane of each word in `pool`. The words are in this order: the
        n terms, then words of phrases that are not terms, then stop words
    phrases : finds the phrases of the token policy
    probe : digest that identifies the tokeniser of the process that made the index, see
        `TokenPolicy.probe`
    """

    holds: ClassVar[Holds] = "texts"

    vocabulary: Vocabulary
    policy: TokenPolicy
    slots: NDArray[np.uint64]
    pool: NDArray[np.uint64]
    starts: NDArray[np.int64]
    phrases: PhraseIndex
    probe: str = ""

    def count(self, texts: pa.Array | pa.ChunkedArray) -> tuple[CountBatch, int]:
        """Count texts as `count_column` does."""
        return count_column(texts, self)

    def counted(self, texts: pa.Array | pa.ChunkedArray) -> CountedPassages:
        """Count texts as `counted_passages` does."""
        return counted_passages(texts, self)

    @classmethod
    def of(cls, vocabulary: Vocabulary, policy: TokenPolicy, slots: int | None = None) -> WordIndex:
        """Make the index.

        `slots` is the size of the hash table, a power of two above the number of words.
        """
        terms = vocabulary.index if policy.phrases else {}
        phrases = PhraseIndex.of(terms, policy.phrases, {*policy.stop_words})
        stopped = {*policy.stop_words}.difference(phrases.keys)
        # put stop words last: if a word is a term and a stop word, a look-up finds the last one
        keys = [*vocabulary.terms, *phrases.keys, *sorted(stopped)]
        data, offsets = buffers(encoded(keys))
        chosen = slots or 1 << (2 * offsets.size).bit_length()
        table = np.zeros((chosen, 2), dtype=np.uint64)
        pool, starts = token_kernels.index_keys(data, offsets, table)
        return cls(vocabulary, policy, table, pool, starts, phrases, policy.probe)


@dataclass(frozen=True, eq=False)
class SpelledTexts:
    """Texts as sequences of their folded words, in the form that `token_kernels` describes.

    Make one with `of`.

    `spelled` holds texts that are folded code point by code point. `folded` holds texts that must
    be folded as a whole.

    spelled, folded : (lanes,) uint64 words
    begins, folded_begins : (texts + 1,) int64 and (texts folded as a whole + 1,) int64, first byte
        of the words of each text
    places : (texts,) int64, index of a text in `folded`, or -1
    """

    spelled: NDArray[np.uint64]
    begins: NDArray[np.int64]
    folded: NDArray[np.uint64]
    folded_begins: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, texts: pa.Array | pa.ChunkedArray, policy: TokenPolicy) -> SpelledTexts:
        """Convert a column of texts to words by the tokeniser of a policy.

        Raises what `count_column` raises.
        """
        whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        data, offsets = buffers(whole)
        if not policy.is_compiled:
            return cls._cut(data, offsets, policy.splitter())
        _require_countable(np.diff(offsets))
        spelled, begins, hard = token_kernels.spell(data, offsets, symbols_of(data)[0])
        spans = ((offsets[document], offsets[document + 1]) for document in np.flatnonzero(hard))
        wholes = (folded_text(data[start:stop].tobytes().decode()) for start, stop in spans)
        # choose the table again for the folded texts: they may have code points beyond the basic
        # plane, even if the original texts have none
        data, offsets = buffers(encoded(wholes))
        folded, folded_begins, _ = token_kernels.spell(data, offsets, symbols_of(data)[1])
        places = np.where(hard, np.cumsum(hard) - 1, -1)
        return cls(spelled, begins, folded, folded_begins, places)

    @classmethod
    def _cut(
        cls, data: NDArray[np.uint8], offsets: NDArray[np.int64], split: Splitter
    ) -> SpelledTexts:
        """Convert texts to words by a tokeniser that is written in Python, one text at a time."""
        sizes, parts = np.zeros(offsets.size, dtype=np.int64), list[bytes]()
        for document, (start, stop) in enumerate(pairwise(offsets.tolist()), start=1):
            try:
                found = split(data[start:stop].tobytes().decode()) if stop > start else ()
            except TokeniserFailed as error:
                raise error.after(document) from None
            parts.append("".join(f"{word}\0" for word in found).encode())
            sizes[document] = len(parts[-1])
        _require_countable(sizes)
        begins = np.cumsum(sizes)
        # add padding at the end, because kernels read words in lanes of 8 bytes
        spelled = np.zeros(int(begins[-1]) // 8 + 4, dtype=np.uint64)
        spelled.view(np.uint8)[: begins[-1]] = np.frombuffer(b"".join(parts), dtype=np.uint8)
        none, nowhere = np.zeros(0, dtype=np.uint64), np.full(sizes.size - 1, -1)
        return cls(spelled, begins, none, np.zeros(1, dtype=np.int64), nowhere)


def _require_countable(sizes: NDArray[np.int64]) -> None:
    if sizes.max(initial=0) > _LARGEST_DOCUMENT:
        raise InvalidInput(f"a document exceeds {_LARGEST_DOCUMENT} bytes; split it")


def count_column(texts: pa.Array | pa.ChunkedArray, index: WordIndex) -> tuple[CountBatch, int]:
    """Count the words of texts: (passages, n) counts, and the number of unknown tokens.

    Unknown tokens are those that the vocabulary of `index` lacks. All passages of a text are in the
    same half of the data, and a null is an empty document. The texts must be valid UTF-8, which is
    not checked again. Raises InvalidInput for a document of 4 GiB, or if the tokeniser of the
    policy is missing or of another version, and TokeniserFailed if it fails.

    Examples
    --------
    >>> policy = TokenPolicy(passage_words=2)
    >>> index = WordIndex.of(Vocabulary(("law", "sea"), core=1), policy)
    >>> batch, outside = count_column(pa.array(["Sea LAW law", None]), index)
    >>> batch.to_csr().toarray().tolist(), outside
    ([[1, 1], [1, 0], [0, 0]], 0)
    """
    found = counted_passages(texts, index)
    return found.batch, int(found.outside.sum())


def counted_passages(texts: pa.Array | pa.ChunkedArray, index: WordIndex) -> CountedPassages:
    """Count texts as `count_column` does, but return the number of unknown tokens of each passage.

    Also returns the number of passages of each text.

    Examples
    --------
    >>> policy = TokenPolicy(passage_words=2)
    >>> index = WordIndex.of(Vocabulary(("law", "sea"), core=1), policy)
    >>> found = counted_passages(pa.array(["Sea LAW tax", None]), index)
    >>> found.outside.tolist(), found.passages.tolist()
    ([0, 1, 0], [2, 1])
    """
    vocabulary, policy = index.vocabulary, index.policy
    begun = time.perf_counter()
    read = SpelledTexts.of(texts, policy)
    cutting = time.perf_counter() - begun
    policy.require_probe(index.probe)
    indptr, words, counts, outside, passages = token_kernels.count_words(
        read.spelled,
        read.begins,
        read.folded,
        read.folded_begins,
        read.places,
        index.slots,
        index.pool,
        index.starts,
        int(np.diff(index.starts).max(initial=1)),
        vocabulary.n_words,
        policy.min_length,
        policy.passage_words or -1,
        index.phrases.steps,
        index.phrases.marks,
    )
    batch = CountBatch(indptr, words, counts, vocabulary.n_words, vocabulary.fingerprint)
    counted = CountedPassages(batch, np.diff(outside), passages, cutting)
    return counted if policy.passage_words is None else counted.halved(counted.odd())

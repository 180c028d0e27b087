"""Conversion of gensim's bags of words to a batch of counts and its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary


@checked
def from_gensim(
    bags: Iterable[Iterable[tuple[int, int]]], dictionary: Mapping[int, str]
) -> tuple[CountBatch, Vocabulary]:
    """Convert gensim's bags of words to a batch of counts and its vocabulary.

    Parameters
    ----------
    bags : iterable of iterables of (int, int)
        Id and count of each word of a document, as from `Dictionary.doc2bow`.
    dictionary : gensim.corpora.Dictionary or mapping
        Word of each id.

    Returns
    -------
    batch : CountBatch
        (documents, n) counts.
    vocabulary : Vocabulary
        The n words of the dictionary, by decreasing count.

    Raises
    ------
    InvalidInput
        The arguments have other types, an id is not in the dictionary, or a count is below 1.

    Examples
    --------
    >>> batch, words = from_gensim([[(0, 2), (2, 1)], [(2, 4)]], {0: "sea", 1: "law", 2: "ship"})
    >>> words.terms, batch.to_csr().toarray().tolist()
    (('ship', 'sea', 'law'), [[1, 2, 0], [4, 0, 0]])
    """
    if not isinstance(dictionary, Mapping) and not hasattr(dictionary, "doc2bow"):
        raise InvalidInput(
            f"the dictionary is of type {type(dictionary).__name__}; give gensim's Dictionary, or "
            "a mapping of ids to words"
        )
    ids = sorted(dictionary.keys())
    terms = [dictionary[one] for one in ids]
    if not ids or not all(isinstance(term, str) for term in terms):
        raise InvalidInput(
            "the dictionary has no words, or words that are not text; map ids to text"
        )
    places = {one: place for place, one in enumerate(ids)}
    try:
        listed: list[list[Any]] = [list(bag) for bag in bags]
        pairs = [(places[int(word)], int(count)) for word, count in chain.from_iterable(listed)]
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidInput(
            f"the bags are not lists of (id, count) for this dictionary ({error}); give the "
            "results of the doc2bow of this dictionary"
        ) from error
    entries = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if entries.size and entries[:, 1].min() < 1:
        raise InvalidInput(f"a count is {entries[:, 1].min()}; counts are at least 1")
    totals = np.bincount(entries[:, 0], entries[:, 1], len(ids))
    order = sorted(range(len(ids)), key=lambda place: (-totals[place], terms[place]))
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    vocabulary = Vocabulary(
        tuple(terms[place] for place in order), core=min(len(ids), DEFAULT_CORE)
    )
    starts = np.cumsum([0, *map(len, listed)])
    batch = CountBatch.from_rows(
        starts, rank[entries[:, 0]], entries[:, 1], len(ids), vocabulary.fingerprint
    )
    return batch, vocabulary

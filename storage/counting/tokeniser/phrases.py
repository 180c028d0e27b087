"""Phrases: words that stand together more often than chance, counted as words of their own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.counting.tokeniser import token_kernels

Phrase = tuple[str, ...]
# Separator of the words of a phrase, as in `new_york`. If there are phrases, no single word may
# contain this separator. Words of the default tokeniser never contain it; in words of other
# tokenisers, `TokenPolicy.splitter` replaces it.
BETWEEN = "_"
LONGEST = 3
# Words are a phrase only if their normalised pointwise mutual information is at least the first
# number. They must also occur together in the sample at least as often as the second number says.
_LEAST_NPMI, _LEAST_OFTEN = 0.5, 10


def term_of(phrase: Phrase) -> str:
    """Join the words of a phrase to its term in the vocabulary.

    Examples
    --------
    >>> term_of(("new", "york"))
    'new_york'
    """
    return BETWEEN.join(phrase)


def without_separator(word: str) -> str:
    """Replace the separator of phrases in a word, so that the word is not spelled like a phrase.

    Examples
    --------
    >>> without_separator("snake_case")
    'snake-case'
    """
    return word.replace(BETWEEN, "-")


def by_first_word(phrases: Iterable[Phrase]) -> dict[str, list[Phrase]]:
    """Map the first word of each phrase to all phrases that begin with it, the longest first."""
    found: dict[str, list[Phrase]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        found.setdefault(phrase[0], []).append(phrase)
    return found


def joined(
    words: Sequence[str], by_first: Mapping[str, Sequence[Phrase]]
) -> Iterator[tuple[str, bool]]:
    """Join words to phrases; yield words and phrases in order, and whether each is a phrase.

    From left to right, the longest phrase that begins at a word replaces its words.

    Examples
    --------
    >>> phrases = by_first_word([("new", "york"), ("new", "york", "times")])
    >>> [term for term, _ in joined("a new york new york times".split(), phrases)]
    ['a', 'new_york', 'new_york_times']
    """
    place = 0
    while place < len(words):
        word, size = words[place], 1
        for phrase in by_first.get(word, ()):
            if tuple(words[place : place + len(phrase)]) == phrase:
                word, size = term_of(phrase), len(phrase)
                break
        yield word, size > 1
        place += size


def require_phrase(phrase: Phrase, kept: Sequence[str]) -> None:
    """Raise InvalidInput unless a phrase has two or three words, and `kept` has all of them.

    A phrase may contain stop words, which are not counted elsewhere.
    """
    if not 2 <= len(phrase) <= LONGEST:
        raise InvalidInput(
            f"the phrase {' '.join(phrase)!r} has {of_number(len(phrase), 'word')}; give "
            f"phrases of 2 or {LONGEST} words"
        )
    if lost := [word for word in phrase if word not in kept]:
        raise InvalidInput(
            f"the phrase {' '.join(phrase)!r} has {lost[0]!r}, which is too short for a word",
            "leave the phrase out, or give a lower {create.min_length}",
        )
    if joint := [word for word in phrase if BETWEEN in word]:
        raise InvalidInput(
            f"the phrase {' '.join(phrase)!r} has {joint[0]!r} with {BETWEEN!r}, which joins the "
            "words of phrases; leave it out"
        )


@dataclass(frozen=True, eq=False)
class OrderedTerms:
    """The words of passages as numbers of terms, in the order of the texts.

    Phrases are searched in this order.

    terms : (words,) int32, for each word the number of its term, or -1 if it is not a token
    starts : (passages + 1,) int64, index of the first word of each passage
    """

    terms: NDArray[np.int32]
    starts: NDArray[np.int64]

    def renumbered(self, places: NDArray[Any]) -> OrderedTerms:
        """Give terms other numbers: `places` has the new number of each; -1 removes the term."""
        known = self.terms >= 0
        terms = np.full(self.terms.size, -1, dtype=np.int32)
        terms[known] = places[self.terms[known]]
        return OrderedTerms(terms, self.starts)

    @classmethod
    def concatenate(cls, parts: Sequence[OrderedTerms]) -> OrderedTerms:
        """Join the passages of several parts, in which the terms have the same numbers."""
        sizes = np.cumsum([0, *(one.terms.size for one in parts)])
        starts = [one.starts[:-1] + before for one, before in zip(parts, sizes, strict=False)]
        return cls(
            np.concatenate([one.terms for one in parts]), np.concatenate([*starts, sizes[-1:]])
        )


def found_phrases(
    names: Sequence[str], order: OrderedTerms, longest: int, least_often: int = 0
) -> tuple[Phrase, ...]:
    """Return pairs and triples of words that stand together more often than chance, sorted.

    A pair is returned if it occurs at least ten times, and its normalised pointwise mutual
    information is at least 0.5. A value of 1 means that the words only occur together, and 0 that
    they occur together by chance. A triple is returned if it satisfies the same conditions as a
    pair of two things: a pair of words, and the third word.

    names : (m,) the terms of the sample
    longest : largest number of words in a phrase, 2 or 3

    Examples
    --------
    >>> order = OrderedTerms(np.array([0, 1, 2] * 10 + [2] * 30, np.int32), np.array([0, 60]))
    >>> found_phrases(["new", "york", "sea"], order, 2)
    (('new', 'york'),)
    """
    least = max(least_often, _LEAST_OFTEN)
    own, size = order.terms.astype(np.int64), max(len(names), 1)
    often = np.bincount(own[own >= 0], minlength=size)
    total = max(int(often.sum()), 2)
    passage = np.repeat(np.arange(order.starts.size - 1), np.diff(order.starts))
    beside = (own[:-1] >= 0) & (own[1:] >= 0) & (passage[:-1] == passage[1:])
    first = np.flatnonzero(beside)
    # (words,) index of the pair that begins at each word, or -1
    pairs = np.full(own.size, -1, dtype=np.int64)
    codes, places, times = _counted(own[first] * size + own[first + 1])
    pairs[first] = places
    left, right = codes // size, codes % size
    good = _stand_together(times, often[left], often[right], total) & (times >= least)
    ends = zip(left[good], right[good], strict=True)
    phrases: list[Phrase] = [(names[one], names[two]) for one, two in ends]
    if longest > 2 and pairs.size:
        begins = np.flatnonzero((pairs[:-1] >= 0) & (pairs[1:] >= 0))
        before, after = pairs[begins], pairs[begins + 1]
        codes, _, threes = _counted(before * codes.size + after)
        one, two = codes // good.size, codes % good.size
        fits = good[one] & _stand_together(threes, times[one], often[right[two]], total)
        fits |= good[two] & _stand_together(threes, often[left[one]], times[two], total)
        kept = np.flatnonzero(fits & (threes >= least))
        phrases += [
            (names[left[one[at]]], names[right[one[at]]], names[right[two[at]]]) for at in kept
        ]
    return tuple(sorted(phrases))


def _counted(codes: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return np.unique(codes, return_inverse=True, return_counts=True)


def _stand_together(
    times: NDArray[Any], left: NDArray[Any], right: NDArray[Any], total: int
) -> NDArray[np.bool_]:
    """Return the mask of pairs of words that stand together often enough to be a phrase.

    The measure is their normalised pointwise mutual information.
    """
    shares = times / total
    information = np.log(shares * total / left * total / right)
    return np.asarray(information >= -_LEAST_NPMI * np.log(np.minimum(shares, 0.5)))


@dataclass(frozen=True, eq=False)
class PhraseIndex:
    """Finds phrases in texts whose words are given as keys, for the kernel that counts words.

    A key is a number. The key of a term is the row of the term in the vocabulary. Words, and
    beginnings of phrases, that are not terms have further keys.

    keys : the word of each further key; an empty text if the key stands for several words
    steps : (2^b, 2) uint64, hash table. It maps the key of one or two words, with the key of the
        next word, to the key of the whole sequence of words
    marks : (keys,) uint8, flags of each key: a phrase begins with it (1); it is a phrase (2); it is
        a stop word, which is only counted in phrases (4). None if there are no phrases
    """

    keys: tuple[str, ...]
    steps: NDArray[np.uint64]
    marks: NDArray[np.uint8] | None

    @classmethod
    def of(
        cls, terms: Mapping[str, int], phrases: Iterable[Phrase], stopped: Container[str]
    ) -> PhraseIndex:
        """Index phrases; `terms` gives the row of each term, and `stopped` has the stop words."""
        places, keys = dict[Phrase, int](), list[str]()

        def key_of(part: Phrase) -> int:
            row = terms.get(term_of(part))
            if row is not None:
                return row
            if part not in places:
                places[part] = len(terms) + len(keys)
                # store an empty string for several words, because a look-up of single words never
                # finds it
                keys.append(part[0] if len(part) == 1 else "")
            return places[part]

        whole = {*phrases}
        steps = dict[tuple[int, int], int]()
        marked = dict[int, int]()
        for phrase in sorted(whole):
            for size in range(2, len(phrase) + 1):
                before, after = key_of(phrase[: size - 1]), key_of(phrase[:size])
                steps[before, key_of(phrase[size - 1 : size])] = after
                marked[before] = marked.get(before, 0) | token_kernels.LEADS
            marked[after] = marked.get(after, 0) | token_kernels.PHRASE
        marks = np.zeros(len(terms) + len(keys), dtype=np.uint8)
        marks[[*marked]] = [*marked.values()]
        marks[[places[part] for part in places if part[0] in stopped and len(part) == 1]] |= (
            token_kernels.STOPS
        )
        ends = np.array([(*pair, end) for pair, end in steps.items()], dtype=np.uint64)
        table = np.zeros((1 << (2 * len(steps)).bit_length(), 2), dtype=np.uint64)
        token_kernels.index_steps(ends.reshape(-1, 3), table)
        return cls(tuple(keys), table, marks if whole else None)

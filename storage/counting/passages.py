"""Cut texts into passages of a given number of words, without making a string for each word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.counting.counting import SpelledTexts


@dataclass(frozen=True, eq=False)
class Passages:
    """Passages of texts, as the words in their order with NUL characters between them.

    Make one with `of`.

    content : (bytes,) uint8, UTF-8 of the words, with a NUL after each
    starts, stops : (passages,) int64, positions in `content` where each passage begins and ends
    """

    content: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, texts: SpelledTexts, passage_words: int | None) -> Passages:
        """Cut each text into at least one passage, as `TokenPolicy.cut` does.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from streaming_moments.storage.counting.tokens import TokenPolicy
        >>> texts = SpelledTexts.of(pa.array(["Law AND sea", ""]), TokenPolicy())
        >>> list(map(words_in, Passages.of(texts, 2)))
        [['law', 'and'], ['sea'], []]
        """
        end = texts.begins[-1]
        parts = (texts.spelled, end), (texts.folded, texts.folded_begins[-1])
        content = np.concatenate([lanes.view(np.uint8)[:used] for lanes, used in parts])
        begins, stops = texts.begins[:-1].copy(), texts.begins[1:].copy()
        hard = texts.places >= 0
        begins[hard], stops[hard] = end + texts.folded_begins[:-1], end + texts.folded_begins[1:]
        # a word lies between two consecutive zeros
        zeros = np.concatenate([[-1], np.flatnonzero(content == 0)])
        first = np.searchsorted(zeros[1:], begins)
        words = np.searchsorted(zeros[1:], stops) - first
        most = passage_words or max(1, int(words.max(initial=1)))
        passages = np.maximum(1, -(-words // most))
        text = np.repeat(np.arange(words.size), passages)
        before = most * (np.arange(text.size) - np.repeat(np.cumsum(passages) - passages, passages))
        after = np.minimum(before + most, words[text])
        starts = zeros[first[text] + before] + 1
        return cls(content, starts, np.maximum(starts, zeros[first[text] + after]))

    def __len__(self) -> int:
        return self.starts.size

    def __getitem__(self, place: int) -> str:
        return self.content[self.starts[place] : self.stops[place]].tobytes().decode()


def words_in(passage: str) -> list[str]:
    """Return the words of a passage of `Passages`."""
    return passage.split("\0") if passage else []

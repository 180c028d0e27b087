"""Tokens: what of a text is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.counting.languages import AUTO, language_names, stop_words_of
from streaming_moments.storage.counting.tokeniser.words import TOKENISER, words


@dataclass(frozen=True)
class TokenPolicy:
    """Which words of a text are tokens, and how long a passage is.

    Stop words are stored as they were resolved, so a policy read back from a store counts as it
    did on the day it was made, whatever the stop-word lists have become.

    Parameters
    ----------
    min_length : int
        Shorter words are no tokens, in characters (code points), at least 1.
    stop_words : tuple of str
        Words that are no tokens: rising, all different, each as `words` returns it.
    passage_words : int, optional
        Words in a passage, at least 1; None makes each document one passage.
    languages : tuple of str
        Languages the stop words came from; for information, not in the fingerprint.

    Raises
    ------
    InvalidInput
        A length below 1, or stop words that are not rising words as `words` returns them:
        resolve them with `for_languages`.

    Examples
    --------
    >>> policy = TokenPolicy(stop_words=("the",), passage_words=3)
    >>> policy.passages("The sea, the SEA, a ship.")
    [['sea'], ['sea', 'ship']]
    """

    min_length: int = 2
    stop_words: tuple[str, ...] = ()
    passage_words: int | None = None
    languages: tuple[str, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.min_length < 1:
            raise InvalidInput(f"min length is {self.min_length} characters; it must be at least 1")
        if self.passage_words is not None and self.passage_words < 1:
            raise InvalidInput(f"passages have {self.passage_words} words; give at least 1 or none")
        if list(self.stop_words) != sorted(set(self.stop_words)):
            raise InvalidInput(
                "the stop words are not in increasing order; make the policy with for_languages"
            )
        for word in self.stop_words:
            if words(word) != [word]:
                raise InvalidInput(
                    f"stop word {word!r} is never a token (its words are {words(word)}); "
                    "make the policy with for_languages"
                )

    @classmethod
    def for_languages(
        cls,
        languages: Iterable[str],
        min_length: int = 2,
        passage_words: int | None = None,
        extra_stop_words: Iterable[str] = (),
    ) -> TokenPolicy:
        """Policy with the stop words of some languages.

        Parameters
        ----------
        languages : iterable of str
            English names or ISO 639-1 codes; case does not matter. `auto` alone stands for the
            languages of the documents: `create` replaces it. `none` alone is no language.
        min_length : int
            Shorter words are no tokens, in characters.
        passage_words : int, optional
            Words in a passage.
        extra_stop_words : iterable of str
            Further stop words, in any spelling.

        Raises
        ------
        InvalidInput
            A language without a list of stop words: names those that have one.

        Examples
        --------
        >>> policy = TokenPolicy.for_languages(["en"], extra_stop_words=["Ship"])
        >>> policy.languages, policy.tokens("The ship doesn't sail the sea")
        (('english',), ['sail', 'sea'])
        """
        if isinstance(languages, str) or isinstance(extra_stop_words, str):
            raise InvalidInput("languages and extra stop words must be lists, got a single text")
        names = language_names(languages)
        pieces = {piece for word in extra_stop_words for piece in words(word)}
        pieces |= stop_words_of(name for name in names if name != AUTO)
        return cls(min_length, tuple(sorted(pieces)), passage_words, names)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TokenPolicy:
        """Policy that `to_json` described.

        Raises
        ------
        InvalidInput
            A description by another version of the tokeniser, or with other fields.

        Examples
        --------
        >>> TokenPolicy.from_json(TokenPolicy(min_length=3).to_json()).min_length
        3
        """
        if content.get("tokeniser") != TOKENISER:
            raise InvalidInput(
                f"the token policy is of tokeniser {content.get('tokeniser')}, this version has "
                f"tokeniser {TOKENISER}; use the version of the package that wrote it"
            )
        fields = {name: value for name, value in content.items() if name != "tokeniser"}
        expected = {"min_length", "stop_words", "passage_words", "languages"}
        if fields.keys() != expected:
            raise InvalidInput(
                f"a token policy has the fields {sorted(expected)}, got {sorted(fields)}"
            )
        stop_words, languages = tuple(fields["stop_words"]), tuple(fields["languages"])
        return cls(fields["min_length"], stop_words, fields["passage_words"], languages)

    def to_json(self) -> dict[str, Any]:
        """Description that JSON can hold.

        Examples
        --------
        >>> TokenPolicy(stop_words=("the",)).to_json()["stop_words"]
        ['the']
        """
        content = {"tokeniser": TOKENISER, **asdict(self)}
        return {**content, "stop_words": [*self.stop_words], "languages": [*self.languages]}

    @property
    def seeks_languages(self) -> bool:
        """Whether its languages are still to be found in a sample of the texts."""
        return AUTO in self.languages

    def in_languages(self, found: Iterable[str]) -> TokenPolicy:
        """Policy with the stop words of the languages that were found, besides its own.

        Examples
        --------
        >>> policy = TokenPolicy.for_languages(["auto"], extra_stop_words=["ship"])
        >>> policy.in_languages(["english"]).tokens("The ship and the sea")
        ['sea']
        """
        return TokenPolicy.for_languages(
            tuple(found), self.min_length, self.passage_words, self.stop_words
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (64 hexadecimal digits) of all that decides on tokens and passages."""
        content = {name: value for name, value in self.to_json().items() if name != "languages"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def tokens(self, text: str) -> list[str]:
        """Tokens of a text in order: words that are long enough and no stop words.

        Examples
        --------
        >>> TokenPolicy(min_length=3).tokens("At sea, 20 ships")
        ['sea', 'ships']
        """
        return self.filtered(words(text))

    def passages(self, text: str) -> list[list[str]]:
        """Tokens of each passage of a text, of which there is at least one.

        Passages are cut before words are filtered, so they are the same stretches of text under
        every choice of stop words.

        Examples
        --------
        >>> TokenPolicy(passage_words=2).passages("law and a sea")
        [['law', 'and'], ['sea']]
        >>> TokenPolicy(passage_words=2).passages("")
        [[]]
        """
        return [self.filtered(passage) for passage in self.cut(words(text))]

    def cut(self, found: list[str]) -> list[list[str]]:
        """Words of each passage, before they are filtered; at least one passage.

        Examples
        --------
        >>> TokenPolicy(passage_words=2).cut(["law", "and", "sea"])
        [['law', 'and'], ['sea']]
        """
        if self.passage_words is None or len(found) <= self.passage_words:
            return [found]
        starts = range(0, len(found), self.passage_words)
        return [found[start : start + self.passage_words] for start in starts]

    def filtered(self, found: Iterable[str]) -> list[str]:
        """Words that are tokens.

        Examples
        --------
        >>> TokenPolicy(stop_words=("and",)).filtered(["law", "and", "a", "sea"])
        ['law', 'sea']
        """
        shortest, stopped = self.min_length, self._stopped
        return [word for word in found if len(word) >= shortest and word not in stopped]

    @cached_property
    def _stopped(self) -> frozenset[str]:
        return frozenset(self.stop_words)

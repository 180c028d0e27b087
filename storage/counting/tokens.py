"""Tokens: the words of a text that are counted."""

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
    """Choice of the words that are tokens, and the length of passages.

    Stop words are stored in full, so a policy from a store always counts in the same way, even if
    the stop-word lists change.

    Parameters
    ----------
    min_length : int
        Smallest length of tokens in characters (code points), at least 1.
    stop_words : tuple of str
        Words that are not tokens: sorted, distinct, each as `words` returns it.
    passage_words : int, optional
        Number of words in a passage, at least 1; None makes each document one passage.
    languages : tuple of str
        Languages of the stop words; for information, not in the fingerprint.

    Raises
    ------
    InvalidInput
        A length is below 1, or the stop words are not sorted words as `words` returns them:
        make the policy with `for_languages`.

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
            raise InvalidInput(
                f"passages have {self.passage_words} words; give at least 1, or None"
            )
        if list(self.stop_words) != sorted(set(self.stop_words)):
            raise InvalidInput(
                "the stop words are not sorted and distinct; make the policy with for_languages"
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
        """Make a policy with the stop words of some languages.

        Parameters
        ----------
        languages : iterable of str
            English names or ISO 639-1 codes, in any case. `auto` alone means the languages of the
            documents, which `create` fills in. `none` alone means no language.
        min_length : int
            Smallest length of tokens in characters.
        passage_words : int, optional
            Number of words in a passage.
        extra_stop_words : iterable of str
            Further stop words, in any spelling.

        Raises
        ------
        InvalidInput
            A language has no list of stop words. The error names the languages that have one.

        Examples
        --------
        >>> policy = TokenPolicy.for_languages(["en"], extra_stop_words=["Ship"])
        >>> policy.languages, policy.tokens("The ship doesn't sail the sea")
        (('english',), ['sail', 'sea'])
        """
        if isinstance(languages, str) or isinstance(extra_stop_words, str):
            raise InvalidInput("languages or extra stop words are a single text; give a list")
        names = language_names(languages)
        pieces = {piece for word in extra_stop_words for piece in words(word)}
        pieces |= stop_words_of(name for name in names if name != AUTO)
        return cls(min_length, tuple(sorted(pieces)), passage_words, names)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TokenPolicy:
        """Decode a policy that `to_json` encoded.

        Raises
        ------
        InvalidInput
            The description comes from another version of the tokeniser, or has other fields.

        Examples
        --------
        >>> TokenPolicy.from_json(TokenPolicy(min_length=3).to_json()).min_length
        3
        """
        if content.get("tokeniser") != TOKENISER:
            raise InvalidInput(
                f"the token policy needs tokeniser {content.get('tokeniser')}, and this version "
                f"has {TOKENISER}; use the version of the package that wrote it"
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
        """Convert the policy to an object for JSON.

        Examples
        --------
        >>> TokenPolicy(stop_words=("the",)).to_json()["stop_words"]
        ['the']
        """
        content = {"tokeniser": TOKENISER, **asdict(self)}
        return {**content, "stop_words": [*self.stop_words], "languages": [*self.languages]}

    @property
    def seeks_languages(self) -> bool:
        """Whether its languages must still be found in a sample of the texts."""
        return AUTO in self.languages

    def in_languages(self, found: Iterable[str]) -> TokenPolicy:
        """Return the policy with the stop words of the found languages as well as its own.

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
        """SHA-256 (64 hexadecimal digits) of everything that affects tokens and passages."""
        content = {name: value for name, value in self.to_json().items() if name != "languages"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text in order: words that are long enough and not stop words.

        Examples
        --------
        >>> TokenPolicy(min_length=3).tokens("At sea, 20 ships")
        ['sea', 'ships']
        """
        return self.filtered(words(text))

    def passages(self, text: str) -> list[list[str]]:
        """Return the tokens of each passage of a text; at least one passage.

        Passages are cut before words are filtered, so they are the same parts of the text for
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
        """Split words into passages, before filtering; at least one passage.

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
        """Select the words that are tokens.

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

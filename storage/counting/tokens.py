"""Token policy: which words of a text are tokens, the words that are counted."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.counting.languages import AUTO, language_names, listed_stop_words
from streaming_moments.storage.counting.tokeniser.phrases import (
    BETWEEN,
    LONGEST,
    Phrase,
    by_first_word,
    joined,
    require_phrase,
    without_separator,
)
from streaming_moments.storage.counting.tokeniser.words import TOKENISER, words
from streaming_moments.storage.counting.tokenisers.base import (
    Splitter,
    Tokeniser,
    TokeniserMissing,
    words_by,
)
from streaming_moments.storage.counting.tokenisers.compiled import NAME as COMPILED
from streaming_moments.storage.counting.tokenisers.registry import (
    probed,
    tokeniser_called,
    tokeniser_of,
)


@dataclass(frozen=True)
class TokenPolicy:
    """How texts become tokens: the tokeniser, which words are tokens, and the length of passages.

    A policy stores all its stop words. So a policy from a store always counts in the same way, even
    if a later release has other lists of stop words.

    Parameters
    ----------
    min_length : int
        Smallest length of tokens in characters (code points), at least 1.
    stop_words : tuple of str
        Words that are not tokens: sorted, distinct, in the form that `words` returns.
    passage_words : int, optional
        Number of words in a passage, at least 1; None makes each document one passage.
    languages : tuple of str
        Languages of the stop words; for information, not in the fingerprint.
    tokeniser : str
        Name of the tokeniser, as given by `create --tokeniser`.
    tokeniser_version : str
        Version of the tokeniser, which must be the same on all machines; empty for `words`, whose
        version is that of the package.
    phrases : tuple of tuple of str
        Words that are one token where they follow each other, such as `("new", "york")`: two or
        three words each, stop words or not, sorted, distinct.
    phrase_words : int, optional
        Find phrases of at most this many words, 2 or 3, in a sample of the texts.

    Raises
    ------
    InvalidInput
        A length is below 1, the stop words are not sorted words as `words` returns them, or the
        tokeniser has no version: make the policy with `for_languages`. Or a phrase does not have
        two or three words, or one of them is too short.

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
    tokeniser: str = COMPILED
    tokeniser_version: str = ""
    phrases: tuple[Phrase, ...] = ()
    phrase_words: int | None = None

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
        if self.is_compiled == bool(self.tokeniser_version):
            raise InvalidInput(
                f"tokeniser {self.tokeniser} has version {self.tokeniser_version!r}; make the "
                "policy with for_languages"
            )
        if self.phrase_words not in (None, *range(2, LONGEST + 1)):
            raise InvalidInput(
                f"phrase_words is {self.phrase_words}; give 2 or {LONGEST}, the largest number of "
                "words in a phrase to find"
            )
        if list(self.phrases) != sorted({*self.phrases}):
            raise InvalidInput("the phrases are not sorted and distinct")
        seeks = self.phrases or self.phrase_words
        if seeks and (joint := [word for word in self.stop_words if BETWEEN in word]):
            raise InvalidInput(
                f"stop word {joint[0]!r} has {BETWEEN!r}, which joins the words of phrases",
                "leave out the stop word, or {create.phrases}",
            )
        for phrase in self.phrases:
            require_phrase(phrase, [word for word in phrase if len(word) >= self.min_length])
        for word in self.stop_words if self.is_compiled else ():
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
        tokeniser: str = COMPILED,
        phrases: Iterable[str] = (),
    ) -> TokenPolicy:
        """Make a policy with the stop words of some languages.

        Parameters
        ----------
        languages : iterable of str
            English names or ISO 639-1 codes, in any case. `auto` alone means the language of a
            tokeniser for one language; with another tokeniser, `create` finds the languages of the
            documents. `none` alone means no language.
        min_length : int
            Smallest length of tokens in characters.
        passage_words : int, optional
            Number of words in a passage.
        extra_stop_words : iterable of str
            Further stop words, in any spelling.
        tokeniser : str
            Tokeniser, as given by `create --tokeniser`.
        phrases : iterable of str
            Phrases of two or three words, in any spelling. "2" or "3" means that `create` finds
            phrases of at most this many words in its sample.

        Raises
        ------
        InvalidInput
            A language has no list of stop words; the error names the languages that have one. Or
            the tokeniser is unknown, or cannot be imported.

        Examples
        --------
        >>> policy = TokenPolicy.for_languages(["en"], extra_stop_words=["Ship"])
        >>> policy.languages, policy.tokens("The ship doesn't sail the sea")
        (('english',), ['sail', 'sea'])
        """
        if any(isinstance(one, str) for one in (languages, extra_stop_words, phrases)):
            raise InvalidInput(
                "languages, extra stop words or phrases are a single text; give a list"
            )
        chosen, names = tokeniser_called(tokeniser), language_names(languages)
        if AUTO in names and chosen.language:
            names = (chosen.language,)
        listed = {*listed_stop_words(names), *extra_stop_words}
        version = "" if chosen.name == COMPILED else chosen.version
        stopped = tuple(sorted(_as_cut(listed, chosen)))
        made = cls(min_length, stopped, passage_words, names, chosen.name, version)
        given = [phrase.strip() for phrase in phrases]
        sought = [int(phrase) for phrase in given if phrase.isdecimal()]
        named = {tuple(made.words(phrase)) for phrase in given if not phrase.isdecimal()}
        return replace(made, phrases=tuple(sorted(named)), phrase_words=max(sought, default=None))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TokenPolicy:
        """Decode a policy that `to_json` encoded.

        Raises
        ------
        InvalidInput
            The object comes from another version of the tokeniser, or has other fields.

        Examples
        --------
        >>> TokenPolicy.from_json(TokenPolicy(min_length=3).to_json()).min_length
        3
        """
        made_by = content.get("tokeniser")
        named = made_by if isinstance(made_by, Mapping) else {"name": COMPILED, "version": ""}
        if named is not made_by and made_by != TOKENISER:
            raise InvalidInput(
                f"the token policy needs tokeniser {made_by}, and this version "
                f"has {TOKENISER}; use the version of the package that wrote it"
            )
        fields = {name: value for name, value in content.items() if name != "tokeniser"}
        expected = {"min_length", "stop_words", "passage_words", "languages"}
        phrases = tuple(map(tuple, fields.pop("phrases", ())))
        if fields.keys() != expected:
            raise InvalidInput(
                f"a token policy has the fields {sorted(expected)}, got {sorted(fields)}"
            )
        stop_words, languages = tuple(fields["stop_words"]), tuple(fields["languages"])
        return cls(
            fields["min_length"],
            stop_words,
            fields["passage_words"],
            languages,
            named["name"],
            named["version"],
            phrases,
        )

    def to_json(self) -> dict[str, Any]:
        """Convert the policy to an object for JSON.

        Examples
        --------
        >>> TokenPolicy(stop_words=("the",)).to_json()["stop_words"]
        ['the']
        """
        named = {"name": self.tokeniser, "version": self.tokeniser_version}
        return {
            "tokeniser": TOKENISER if self.is_compiled else named,
            "min_length": self.min_length,
            "stop_words": [*self.stop_words],
            "passage_words": self.passage_words,
            "languages": [*self.languages],
            **({"phrases": [[*phrase] for phrase in self.phrases]} if self.phrases else {}),
        }

    @property
    def is_compiled(self) -> bool:
        """Whether the policy has the default tokeniser, so that compiled kernels find words."""
        return self.tokeniser == COMPILED

    @property
    def of_whole_texts(self) -> TokenPolicy:
        """The same policy, but with each text as one passage."""
        return replace(self, passage_words=None)

    @property
    def runs_here(self) -> bool:
        """Whether this process has the tokeniser of the policy, in the same version."""
        try:
            self.splitter()
        except TokeniserMissing:
            return False
        return True

    @property
    def probe(self) -> str:
        """Digest of the words that the tokeniser finds in a test text in this process.

        Empty for the default tokeniser, or if the tokeniser is missing.
        """
        return "" if self.is_compiled or not self.runs_here else probed(self.tokeniser)

    def require_probe(self, made: str) -> None:
        """Raise TokeniserMissing if the tokeniser finds other words here than in another process.

        `made` is the `probe` of the other process. There, the function of a user may have other
        code, but the same version.
        """
        if made and probed(self.tokeniser) != made:
            raise TokeniserMissing(
                f"tokeniser {self.tokeniser} of version {self.tokeniser_version} finds other words "
                f"on the machine {platform.node()} than on another one; install the same code on "
                "all machines, with a new version if its words have changed"
            )

    def splitter(self) -> Splitter:
        """Make the function that cuts texts into words, for one thread.

        If the policy has phrases, words of tokenisers other than the default one get "-" in place
        of "_", because "_" joins the words of phrases. Raises TokeniserMissing if the tokeniser is
        missing on this machine, or has another version here. The function raises TokeniserFailed as
        `words_by` does.
        """
        if self.is_compiled:
            return words
        split = tokeniser_of(self.tokeniser, self.tokeniser_version).splitter()
        if self.phrases:
            return lambda text: [
                without_separator(word) for word in words_by(split, self.tokeniser, text)
            ]
        return lambda text: words_by(split, self.tokeniser, text)

    def words(self, text: str) -> list[str]:
        """Cut a text into words, also those that are not tokens; raises what `splitter` raises."""
        return [*self.splitter()(text)]

    @property
    def seeks_languages(self) -> bool:
        """Whether the languages of the texts must still be found in a sample."""
        return AUTO in self.languages

    def in_languages(self, found: Iterable[str]) -> TokenPolicy:
        """Return the policy with the stop words of the found languages in addition to its own.

        Examples
        --------
        >>> policy = TokenPolicy.for_languages(["auto"], extra_stop_words=["ship"])
        >>> policy.in_languages(["english"]).tokens("The ship and the sea")
        ['sea']
        """
        more = TokenPolicy.for_languages(tuple(found), tokeniser=self.tokeniser)
        stopped = tuple(sorted({*self.stop_words, *more.stop_words}))
        return replace(self, stop_words=stopped, languages=more.languages)

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
        return self.tokens_in(self.words(text))

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
        return [self.tokens_in(passage) for passage in self.cut(self.words(text))]

    def cut(self, found: list[str]) -> list[list[str]]:
        """Split words into passages, at least one, without removing stop words.

        Examples
        --------
        >>> TokenPolicy(passage_words=2).cut(["law", "and", "sea"])
        [['law', 'and'], ['sea']]
        """
        if self.passage_words is None or len(found) <= self.passage_words:
            return [found]
        starts = range(0, len(found), self.passage_words)
        return [found[start : start + self.passage_words] for start in starts]

    def tokens_in(self, found: Sequence[str]) -> list[str]:
        """Return the tokens among the words of a passage.

        Tokens are phrases, and words that `filtered` keeps.

        Examples
        --------
        >>> policy = TokenPolicy(phrases=(("new", "york"),))
        >>> policy.tokens_in(["a", "new", "york", "port"])
        ['new_york', 'port']
        """
        if not self.phrases:
            return self.filtered(found)
        shortest, stopped = self.min_length, self._stopped
        return [
            word
            for word, is_phrase in self.joined(found)
            if is_phrase or (len(word) >= shortest and word not in stopped)
        ]

    def joined(self, found: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """Yield the words of a passage with phrases joined, and whether each is a phrase."""
        return joined(found, self._by_first)

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
    def _by_first(self) -> dict[str, list[Phrase]]:
        return by_first_word(self.phrases)

    @cached_property
    def _stopped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


def _as_cut(stop_words: Iterable[str], tokeniser: Tokeniser) -> set[str]:
    """Return stop words as the tokeniser changes them, for example to their stems."""
    if tokeniser.name == COMPILED:
        return {piece for word in stop_words for piece in words(word)}
    split, spelled = tokeniser.splitter(), set[str]()
    for word in stop_words:
        for piece in {word, *words(word)}:
            # If the tokeniser cuts or drops a stop word, keep the word unchanged, because its parts
            # may have another meaning.
            found = words_by(split, tokeniser.name, piece)
            spelled.add(found[0] if len(found) == 1 else piece)
    return spelled

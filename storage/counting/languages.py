"""Stop words of languages, and detection of the languages of texts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from stop_words import LANGUAGE_MAPPING, get_stop_words

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.printing.remedies import Remedy, remedy
from streaming_moments.storage.counting.tokeniser.words import words
from streaming_moments.storage.counting.tokenisers.libraries import library

# Users can give these words instead of a language. AUTO means the languages that are found in a
# sample of the texts, and NONE means no language.
AUTO, NONE = "auto", "none"
# A passage is in a language if at least this share of its words, and at least two different words,
# are stop words of the language. Stop words are 17% of the words in Arabic and Turkish, and 30% to
# 60% in most languages.
_SHARE_OF_PASSAGE = 0.15
_WORDS_OF_PASSAGE = 2
# A sample is in a language if at least this share of its passages is.
_SHARE_OF_PASSAGES = 0.08
# A sample is in a language only if it has at least three different stop words of the language, and
# two of them have at least three letters. So codes of countries and the like, which are in some
# lists of stop words, do not suffice.
_FEWEST_WORDS, _FEWEST_LONG_WORDS, _LONG = 3, 2, 3
_MOST_PASSAGES = 4_000  # at most this many passages of a sample are examined
# Some languages need a tokeniser of their own, for example because they have no spaces between
# words. These are the ranges of code points of their letters.
_KANA, _THAI = "kana", "thai"
_SCRIPTS = {
    "chinese": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x20000, 0x3FFFF)),
    _KANA: ((0x3041, 0x30FF),),
    "korean": ((0xAC00, 0xD7A3),),
    _THAI: ((0x0E01, 0x0E7F),),
}
_SHARE_OF_LETTERS, _SHARE_OF_KANA = 0.25, 0.1


def language_names(languages: Iterable[str]) -> tuple[str, ...]:
    """Convert names or ISO 639-1 codes of languages to English names, sorted.

    `auto` is returned as it is, and `none` gives no languages. Raises InvalidInput for an unknown
    language, and if `auto` or `none` is given together with other languages.

    Examples
    --------
    >>> language_names(["it", "English"]), language_names(["none"]), language_names(["auto"])
    (('english', 'italian'), (), ('auto',))
    """
    wanted = [language.strip().lower() for language in languages]
    for alone in (AUTO, NONE):
        if alone in wanted and len({*wanted}) > 1:
            raise InvalidInput(
                f"the language {alone!r} is given with {len({*wanted}) - 1} more; give it alone, "
                "or leave it out"
            )
    if wanted and wanted[0] in (AUTO, NONE):
        return (AUTO,) if wanted[0] == AUTO else ()
    return tuple(sorted({_name(language) for language in wanted}))


def known_languages() -> tuple[str, ...]:
    """Return the values of `--language`, for completion by a shell.

    Examples
    --------
    >>> [name for name in known_languages() if name.startswith("i")]
    ['indonesian', 'italian']
    """
    return AUTO, NONE, *sorted({*LANGUAGE_MAPPING.values(), _THAI})


def listed_stop_words(languages: Iterable[str]) -> set[str]:
    """Return the stop words of languages (English names) as they are spelled in published lists.

    A language without a list has no stop words.

    Raises InvalidInput for Thai if the library of its tokeniser is missing, because this library
    has the list of Thai stop words.
    """
    known, listed = LANGUAGE_MAPPING.values(), set[str]()
    for name in languages:
        if name in known:
            listed |= {*get_stop_words(name)}
        elif name == _THAI:
            listed |= library("pythainlp.corpus", _THAI).thai_stopwords()
    return listed


def stop_words_of(languages: Iterable[str]) -> set[str]:
    """Return the stop words of languages (English names), as the default tokeniser splits them."""
    return {piece for word in listed_stop_words(languages) for piece in words(word)}


@functools.cache
def _stop_words_of_each() -> dict[str, set[str]]:
    """Return the stop words of each language that has a list of them; cached, as it takes 5 ms."""
    return {name: stop_words_of([name]) for name in sorted(LANGUAGE_MAPPING.values())}


def languages_of(terms: Sequence[str], counts: Any) -> tuple[str, ...]:
    """Find the languages of the passages of a sample; that with the most stop words comes first.

    Languages share stop words. So each language is judged only by stop words that no language found
    before it has. Otherwise Spanish texts would also be in Catalan.

    terms : terms of a sample, including stop words
    counts : (passages, terms) sparse counts of the terms in each passage

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> languages_of(["and", "law", "of", "the"], sp.csr_array([[1, 1, 1, 2], [1, 1, 0, 2]]))
    ('english',)
    """
    rows = sp.csr_array(counts)
    rows = rows[:: max(1, -(-rows.shape[0] // _MOST_PASSAGES))]
    rows = rows[rows.sum(axis=1) > 0]
    lengths, present = rows.sum(axis=1).reshape(-1, 1), rows.astype(bool).astype(np.int64)
    lists = _stop_words_of_each()
    long = np.array([len(term) >= _LONG for term in terms], dtype=bool)
    # (terms, languages): whether a term is evidence for a language
    speaks = np.array([[term in own for own in lists.values()] for term in terms], dtype=bool)
    speaks, found = speaks.reshape(len(terms), len(lists)), list[str]()
    while rows.shape[0]:
        held = sp.csr_array(speaks, dtype=np.int64)
        stopped, distinct = (rows @ held).toarray(), (present @ held).toarray()
        inside = (distinct >= _WORDS_OF_PASSAGE) & (stopped >= _SHARE_OF_PASSAGE * lengths)
        met = speaks & (present.T @ inside.astype(np.int64) > 0)
        fits = (
            (met.sum(axis=0) >= _FEWEST_WORDS)
            & (met[long].sum(axis=0) >= _FEWEST_LONG_WORDS)
            & (inside.mean(axis=0) >= _SHARE_OF_PASSAGES)
        )
        if not fits.any():
            break
        best = int(np.argmax((stopped * inside).sum(axis=0) * fits))
        found.append([*lists][best])
        speaks &= ~speaks[:, [best]]
    return tuple(found)


def unspaced_language(terms: Sequence[str], counts: Any) -> str:
    """Find the language of texts if the default tokeniser cannot split this language into words.

    Returns the English name of the language, or an empty text.

    Chinese, Japanese and Thai have no spaces between words, and Korean words end in particles. At
    least a quarter of the letters must belong to one of these languages.

    terms : terms of a sample
    counts : (terms,) number of occurrences of each term

    Examples
    --------
    >>> unspaced_language(["我们在北京大学", "pdf"], [3, 2]), unspaced_language(["law"], [9])
    ('chinese', '')
    """
    letters = np.frombuffer("".join(terms).encode("utf-32-le", "replace"), dtype="<u4")
    often = np.repeat(np.asarray(counts), np.array([len(term) for term in terms], dtype=np.int64))
    held = {
        name: int(
            often[np.any([(low <= letters) & (letters <= high) for low, high in own], 0)].sum()
        )
        for name, own in _SCRIPTS.items()
    }
    # Japanese is written in both kana and Chinese characters
    kana = held.pop(_KANA)
    held["japanese"] = 0
    if kana >= _SHARE_OF_KANA * held["chinese"]:
        held["japanese"], held["chinese"] = kana + held["chinese"], 0
    most = max(held, key=lambda name: held[name])
    return most if 0 < held[most] >= _SHARE_OF_LETTERS * int(often.sum()) else ""


def tokeniser_advice(language: str) -> Remedy:
    """Return advice for texts in a language that `unspaced_language` returned.

    Examples
    --------
    >>> str(tokeniser_advice("thai")).partition(":")[0]
    'The texts are in Thai, whose words need a tokeniser of their own'
    """
    return remedy(
        "The texts are in {name}, whose words need a tokeniser of their own: install it "
        f"(`pip install 'streaming-moments[{language}]'`), and create another store with "
        f"{{create.tokeniser:{language}}}",
        name=language.title(),
    )


def _name(language: str) -> str:
    codes = {**LANGUAGE_MAPPING, "th": _THAI}
    name = codes.get(language, language)
    if name not in codes.values():
        known = ", ".join(f"{name} ({code})" for code, name in sorted(codes.items()))
        raise InvalidInput(
            f"there are no stop words for language {language!r}; choose among {known}, {AUTO} (the "
            f"languages of the texts) and {NONE}"
        )
    return str(name)

"""Languages: their stop words, and which of them texts are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from stop_words import LANGUAGE_MAPPING, get_stop_words

from streaming_moments.errors import InvalidInput
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.counting.tokeniser.words import words

if TYPE_CHECKING:
    import scipy.sparse as sp
else:
    sp = LazyModule("scipy.sparse")

# What stands for a language: those that a sample shows, and none at all.
AUTO, NONE = "auto", "none"
# A passage is in a language if so much of it, and two words or more, are stop words of it: in
# Arabic and Turkish 17% are, in most languages 30% to 60%.
_SHARE_OF_PASSAGE = 0.15
_WORDS_OF_PASSAGE = 2
# A language counts if so many of the passages are in it.
_SHARE_OF_PASSAGES = 0.08
# Codes of countries and the like are stop words of some list, but few and short ones.
_FEWEST_WORDS, _FEWEST_LONG_WORDS, _LONG = 3, 2, 3
_MOST_PASSAGES = 4_000  # looked at


def language_names(languages: Iterable[str]) -> tuple[str, ...]:
    """English names of languages, which are given by name or by ISO 639-1 code, in order.

    `auto` stays as it is, and `none` is dropped. InvalidInput for an unknown language, and where
    one of these two is not alone.

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


def stop_words_of(languages: Iterable[str]) -> set[str]:
    """Stop words of languages by their English names, in pieces as `words` returns them."""
    listed = [word for name in languages for word in get_stop_words(name)]
    return {piece for word in listed for piece in words(word)}


def languages_of(terms: Sequence[str], counts: Any) -> tuple[str, ...]:
    """Languages that passages are in, those of most stop words first.

    Languages share stop words. Each further language is judged by those words alone that are in no
    list of a language before it, so that Spanish texts are not also in Catalan.

    terms : of a sample, stop words among them
    counts : (passages, terms) sparse

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
    lists = {name: stop_words_of([name]) for name in sorted(LANGUAGE_MAPPING.values())}
    long = np.array([len(term) >= _LONG for term in terms], dtype=bool)
    # (terms, languages): which words speak for a language
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


def _name(language: str) -> str:
    name = LANGUAGE_MAPPING.get(language, language)
    if name not in LANGUAGE_MAPPING.values():
        known = ", ".join(f"{name} ({code})" for code, name in sorted(LANGUAGE_MAPPING.items()))
        raise InvalidInput(
            f"no stop words for language {language!r}; known are {known}, {AUTO} (those of the "
            f"texts) and {NONE}"
        )
    return str(name)

"""Phrases: which stand together, and how they are counted in place of their words."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting import TokenPolicy
from streaming_moments.storage.counting.counting import WordIndex, counted_passages
from streaming_moments.storage.counting.samples import (
    merge_samples,
    sample_of_passages,
    with_phrases,
    without_stop_words,
)
from streaming_moments.storage.counting.tokeniser.phrases import (
    OrderedTerms,
    found_phrases,
    term_of,
)
from streaming_moments.storage.formats import encoded

WORDS = st.sampled_from(["a", "b", "c", "d", "x", "ab", "the"])
PHRASES = st.sets(
    st.lists(st.sampled_from(["a", "b", "c", "ab", "the"]), min_size=2, max_size=3).map(tuple),
    max_size=6,
)


@given(
    st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=4),
    PHRASES,
    st.sets(st.sampled_from(["a", "b", "c", "ab", "x"]), min_size=1),
    st.sampled_from([None, 3]),
    st.booleans(),
)
def test_the_kernel_counts_as_the_reference(texts, phrases, known, passage_words, in_vocabulary):
    policy = TokenPolicy(1, ("the",), passage_words, phrases=tuple(sorted(phrases)))
    terms = [*sorted(known), *(sorted(map(term_of, phrases)) if in_vocabulary else ())]
    vocabulary = Vocabulary(tuple(terms), 1, policy.fingerprint)
    counted = counted_passages(encoded(texts), WordIndex.of(vocabulary, policy))
    passages = [Counter(part) for text in texts for part in policy.passages(text)]
    dense = counted.batch.to_csr().toarray().tolist()
    assert dense == [[own[term] for term in terms] for own in passages]
    # no word is stored with a count of zero
    assert counted.batch.counts.min(initial=1) > 0
    expected = [sum(own.values()) - sum(row) for own, row in zip(passages, dense, strict=True)]
    assert counted.outside.tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new york times", ["new_york_times"]),
        ("new york new york", ["new_york", "new_york"]),
        ("new the york", ["new", "york"]),
        ("court of the law", ["court_of", "law"]),
        ("court the of law", ["court", "law"]),
        ("a b d", ["a", "b_d"]),
        ("a b c", ["a_b_c"]),
        ("a b b c", ["a", "b", "b", "c"]),
    ],
)
def test_the_longest_phrase_from_the_left_takes_the_place_of_its_words(text, expected):
    phrases = ("a", "b", "c"), ("b", "d"), ("new", "york"), ("new", "york", "times")
    policy = TokenPolicy(1, ("of", "the"), phrases=(*phrases[:2], ("court", "of"), *phrases[2:]))
    assert policy.tokens(text) == expected
    vocabulary = Vocabulary(tuple(sorted({*expected})), 1, policy.fingerprint)
    counted = counted_passages(encoded([text]), WordIndex.of(vocabulary, policy))
    assert counted.batch.lengths.tolist() == [len(expected)]
    assert counted.outside.tolist() == [0]


def test_phrases_are_part_of_the_policy():
    plain, named = TokenPolicy(), TokenPolicy.for_languages((), phrases=["New York"])
    assert named.phrases == (("new", "york"),)
    assert TokenPolicy.from_json(named.to_json()) == named
    assert named.fingerprint != plain.fingerprint
    assert "phrases" not in plain.to_json()
    sought = TokenPolicy.for_languages((), phrases=["3", "New York"])
    assert (sought.phrase_words, sought.phrases) == (3, named.phrases)


@pytest.mark.parametrize(
    ("phrases", "told"),
    [
        (["york"], "has 1 word; give phrases of 2 or 3"),
        (["a b c d"], "has 4 words"),
        (["port of a rome"], "has 4 words"),
        (["port o rome"], "'o', which is too short for a word"),
        (["4"], "phrase_words is 4; give 2 or 3"),
        ("new york", "a single text; give a list"),
    ],
)
def test_what_is_no_phrase_is_named(phrases, told):
    with pytest.raises(InvalidInput, match=told):
        TokenPolicy.for_languages(["english"], 1 if told.startswith("has") else 2, phrases=phrases)


def planted(seed=0, passages=400):
    """Words drawn by chance, among which two and three words always stand together."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{'abcdefghij'[n % 10]}{'abcdefghij'[n // 10]}" for n in range(60)])
    made = []
    for _ in range(passages):
        drawn = rng.choice(words, 30).tolist()
        for phrase in (["new", "york"], ["of", "supreme", "court", "law"]):
            if rng.random() < 0.3:
                at = int(rng.integers(30))
                drawn[at:at] = phrase
        made.append(drawn)
    return made


def test_planted_phrases_are_found_and_no_others():
    seeking = TokenPolicy(phrase_words=3)
    parts = [sample_of_passages(planted(seed), seeking, 400) for seed in (1, 2)]
    sample = merge_samples(parts)
    stopped = TokenPolicy(stop_words=("of",), phrase_words=3)
    sample = without_stop_words(sample, stopped)
    pairs = ("court", "law"), ("new", "york"), ("supreme", "court")
    assert found_phrases(sample.terms, sample.order, 2) == pairs
    assert found_phrases(sample.terms, sample.order, 3) == tuple(
        sorted((*pairs, ("supreme", "court", "law")))
    )
    # the sample counts them as if the policy had had them from the beginning
    policy = TokenPolicy(stop_words=("of",), phrases=pairs)
    again = with_phrases(sample, policy)
    direct = merge_samples([sample_of_passages(planted(seed), policy, 400) for seed in (1, 2)])
    assert again.terms == direct.terms
    assert (again.batch.to_csr() != direct.batch.to_csr()).nnz == 0
    assert again.policy == direct.policy
    with pytest.raises(InvalidInput, match="does not record the order"):
        with_phrases(direct, policy)


def test_the_ends_of_passages_make_no_phrase():
    order = OrderedTerms(np.tile(np.array([1, 0], np.int32), 20), np.arange(0, 41, 1))
    assert found_phrases(["a", "b"], order, 3) == ()
    dropped = OrderedTerms(np.tile(np.array([0, -1, 1, -1], np.int32), 20), np.array([0, 80]))
    assert found_phrases(["a", "b"], dropped, 3) == ()
    assert found_phrases([], OrderedTerms(np.zeros(0, np.int32), np.zeros(1, np.int64)), 3) == ()

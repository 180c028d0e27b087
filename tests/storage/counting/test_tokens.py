"""Words, tokens and passages."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stop_words import LANGUAGE_MAPPING

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.tokeniser.words import words
from streaming_moments.storage.counting.tokens import TokenPolicy

# Letters, marks, digits and signs of several scripts, and some beyond the basic plane.
TEXTS = st.text(
    st.sampled_from(
        "aBzÉß İıǅ的 かが한हिन्दी ά\u0301\u0345\u093f\u0307 09²_-'.\n\U00010400\U0001f600"
    )
    | st.characters(),
    max_size=60,
)


def by_definition(text: str) -> list[str]:
    """Maximal runs of a letter and then letters and marks, character by character."""
    normal = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    runs: list[str] = []
    inside = False
    for character in normal:
        category = unicodedata.category(character)[0]
        if inside and category in "LM":
            runs[-1] += character
        elif inside := category == "L":
            runs.append(character)
    return runs


@given(TEXTS)
def test_words_are_the_runs_of_the_definition(text: str) -> None:
    assert words(text) == by_definition(text)


@given(TEXTS)
def test_spelling_in_nfc_and_nfd_gives_the_same_words(text: str) -> None:
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))


@given(TEXTS)
def test_case_makes_no_difference_to_ascii(text: str) -> None:
    ascii_text = text.encode("ascii", "ignore").decode()
    assert words(ascii_text.upper()) == words(ascii_text.lower())


@given(TEXTS, st.integers(1, 4), st.none() | st.integers(1, 7), st.sets(st.sampled_from("abz")))
def test_passages_put_together_are_the_tokens(
    text: str, min_length: int, passage_words: int | None, stopped: set[str]
) -> None:
    policy = TokenPolicy(min_length, tuple(sorted(stopped)), passage_words)
    passages = policy.passages(text)
    assert [token for passage in passages for token in passage] == policy.tokens(text)
    expected = -(-len(words(text)) // passage_words) if passage_words else 1
    assert len(passages) == max(1, expected)


@given(TEXTS, st.integers(1, 5))
def test_passages_are_the_same_stretches_whatever_is_filtered(text: str, length: int) -> None:
    everything = TokenPolicy(1, (), length).passages(text)
    policy = TokenPolicy(2, ("ss", "zz"), length)
    assert policy.passages(text) == [policy.filtered(passage) for passage in everything]


def test_hindi_words_keep_their_vowel_signs() -> None:
    assert words("हिन्दी में किताब") == ["हिन्दी", "में", "किताब"]


def test_final_and_medial_sigma_and_sharp_s_fold() -> None:
    assert words("ΟΔΟΣ οδος STRASSE Straße") == ["οδοσ", "οδοσ", "strasse", "strasse"]


@pytest.mark.parametrize("text", ["", " ", "123 -- 4", "\n\u0301"])
def test_a_text_without_words_is_one_empty_passage(text: str) -> None:
    assert TokenPolicy().passages(text) == [[]]
    assert TokenPolicy(passage_words=3).passages(text) == [[]]


def test_min_length_counts_characters() -> None:
    assert TokenPolicy(min_length=3).tokens("an été 的 的的的") == ["été", "的的的"]


def test_stop_words_are_cut_like_text() -> None:
    policy = TokenPolicy.for_languages((), extra_stop_words=["Don't", "E\u0301TE"])
    assert policy.stop_words == ("don", "t", "éte")
    assert policy.tokens("don't ÉTE stay") == ["stay"]


@pytest.mark.parametrize("language", sorted(LANGUAGE_MAPPING))
def test_stop_words_of_every_language_by_code_and_name(language: str) -> None:
    by_code = TokenPolicy.for_languages([language])
    by_name = TokenPolicy.for_languages([LANGUAGE_MAPPING[language].title()])
    assert by_code == by_name
    assert by_code.languages == (LANGUAGE_MAPPING[language],)
    assert by_code.stop_words


def test_languages_are_united() -> None:
    both = set(TokenPolicy.for_languages(["fr", "en"]).stop_words)
    assert {"the", "dans"} <= both


def test_an_unknown_language_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"no stop words for language 'klingon'.*english \(en\)"):
        TokenPolicy.for_languages(["klingon"])


def test_a_single_text_is_no_list_of_languages() -> None:
    with pytest.raises(InvalidInput, match="a single text; give a list"):
        TokenPolicy.for_languages("en")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_length": 0}, "min length is 0 characters; it must be at least 1"),
        ({"passage_words": 0}, "passages have 0 words; give at least 1"),
        ({"stop_words": ("b", "a")}, "not sorted and distinct; make the policy with for_languages"),
        ({"stop_words": ("a", "a")}, "not sorted and distinct"),
        ({"stop_words": ("The",)}, r"'The' is never a token \(its words are \['the'\]\)"),
        ({"stop_words": ("don't",)}, r"its words are \['don', 't'\]"),
    ],
)
def test_bad_policies(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TokenPolicy(**arguments)  # type: ignore[arg-type]


def test_a_policy_survives_json() -> None:
    policy = TokenPolicy.for_languages(["de"], 3, 200, ["Übrigens"])
    again = TokenPolicy.from_json(json.loads(json.dumps(policy.to_json())))
    assert again == policy
    assert again.fingerprint == policy.fingerprint


def test_json_of_another_tokeniser_or_shape_is_refused() -> None:
    content = TokenPolicy().to_json()
    with pytest.raises(InvalidInput, match="needs tokeniser 99, and this version has 1"):
        TokenPolicy.from_json({**content, "tokeniser": 99})
    with pytest.raises(InvalidInput, match=r"has the fields .*, got .*'stemmer'"):
        TokenPolicy.from_json({**content, "stemmer": "porter"})


def test_the_fingerprint_is_that_of_all_stores_so_far() -> None:
    policy = TokenPolicy(2, ("and", "the"), 200)
    expected = "34cef262177799eedbec994f2e207de6b32f7c8de254455501f1807c60c8d5ca"
    assert policy.fingerprint == expected


def test_the_fingerprint_tells_what_decides_and_nothing_else() -> None:
    policies = [
        TokenPolicy(),
        TokenPolicy(min_length=3),
        TokenPolicy(stop_words=("and",)),
        TokenPolicy(passage_words=9),
    ]
    assert len({policy.fingerprint for policy in policies}) == 4
    assert TokenPolicy(languages=("english",)).fingerprint == TokenPolicy().fingerprint

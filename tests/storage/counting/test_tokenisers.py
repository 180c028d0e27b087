"""Tokenisers by name: which words they find, which versions fit, and how their failures read."""

import json
import pickle
import sys

import own_words
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stop_words import LANGUAGE_MAPPING

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting import TokenPolicy, read_shard, sample_shard
from streaming_moments.storage.counting.counting import SpelledTexts, WordIndex, count_column
from streaming_moments.storage.counting.passages import Passages, words_in
from streaming_moments.storage.counting.tokenisers import japanese, registry
from streaming_moments.storage.counting.tokenisers.base import (
    TokeniserFailed,
    TokeniserMissing,
    words_by,
)
from streaming_moments.storage.counting.tokenisers.function import name_of
from streaming_moments.storage.counting.tokenisers.registry import FAMILIES, tokeniser_called
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

# as released: stores of all earlier versions have fingerprints of policies such as this
EARLIER = {
    "tokeniser": 1,
    "min_length": 3,
    "stop_words": ["and", "the"],
    "passage_words": None,
    "languages": [],
}
FINGERPRINT = "b9588c9a2046fe05776bcc4e6d58f128f7b8425ff30e0a201681a5254882ac0d"


def policy(tokeniser, **more):
    return TokenPolicy.for_languages(["none"], 1, tokeniser=tokeniser, **more)


def index_of(own, *terms):
    return WordIndex.of(Vocabulary(terms, 1, own.fingerprint), own)


def test_policies_of_earlier_versions_keep_their_json_and_fingerprint():
    kept = TokenPolicy.from_json(EARLIER)
    assert kept.to_json() == EARLIER
    assert kept.is_compiled
    assert kept == TokenPolicy(3, ("and", "the"))
    assert kept.fingerprint == FINGERPRINT


def test_name_and_version_are_part_of_the_fingerprint():
    patterns = policy("regex:[a-z]+"), policy("regex:[a-z]{2,}")
    assert len({one.fingerprint for one in (*patterns, policy("words"))}) == 3
    other = json.loads(json.dumps(patterns[0].to_json()))
    assert TokenPolicy.from_json(other) == patterns[0]
    other["tokeniser"]["version"] = "0"
    foreign = TokenPolicy.from_json(other)
    assert foreign.fingerprint != patterns[0].fingerprint
    # a store of another version opens, but nothing is counted for it
    assert not foreign.runs_here
    with pytest.raises(
        TokeniserMissing, match=r"\[a-z\]\+ of version 0, .* has version 1, words 1"
    ):
        index_of(foreign, "sea").counted(pa.array(["sea"]))


@given(st.lists(st.text(st.sampled_from("ab Cß1-'\u0301"), max_size=20), max_size=4))
def test_a_tokeniser_in_python_counts_as_the_kernels_count_its_words(texts):
    """By the pattern of letters and marks, a text has the words that the kernels find."""
    plain = TokenPolicy(1, passage_words=2)
    own = policy(r"regex:[^\W\d_][^\W\d_\u0301]*\u0301?", passage_words=2)
    terms = ("a", "ab", "b", "ss", "\u0107")
    column = pa.array(texts, pa.large_string())
    counted = [index_of(one, *terms).counted(column) for one in (plain, own)]
    if any(own.words(text) != plain.words(text) for text in texts):
        return
    first, second = (one.batch.to_csr().toarray().tolist() for one in counted)
    assert first == second
    assert counted[0].outside.tolist() == counted[1].outside.tolist()
    assert counted[0].passages.tolist() == counted[1].passages.tolist()


def test_words_may_hold_blanks_and_any_letters():
    own = policy("own_words:by_commas")
    assert own.tokeniser_version == "commas 2"
    texts = pa.array(["New York, Überraschung, x y z  , New York", None, ""])
    batch, outside = count_column(texts, index_of(own, "New York", "Überraschung"))
    assert batch.to_csr().toarray().tolist() == [[2, 1], [0, 0], [0, 0]]
    assert outside == 1
    passages = Passages.of(SpelledTexts.of(texts, own), 3)
    assert list(map(words_in, passages)) == [
        ["New York", "Überraschung", "x y z"],
        ["New York"],
        [],
        [],
    ]


def test_a_pattern_of_one_group_gives_the_group():
    assert policy(r"regex:#(\w+)").words("#Sea and #LAW") == ["sea", "law"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("regex:[a-", "cannot be compiled: unterminated character set"),
        ("regex:(a)(b)", "2 groups"),
        ("regex:", "lacks its pattern"),
        ("regex", "no tokeniser 'regex'; choose among words, regex:PATTERN"),
        ("words:english", "cannot be imported"),
        ("nowhere_at_all:cut", "cannot be imported: ModuleNotFoundError.*PYTHONPATH"),
        ("own_words:missing", "cannot be imported: AttributeError"),
        ("own_words:CONSTANT", "is of type int; give a function"),
        ("own_words:Cutter", "is of type type; give a function"),
        ("own_words:instance", "is of type Cutter; give a function"),
        ("own_words:unmarked", "is not marked as a tokeniser; set unmarked.version = '1' in own_"),
        ("textwrap:wrap", "is not marked as a tokeniser"),
        # what another module imports is not reached through it
        ("logging:os.system", "is of type builtin_function_or_method"),
        ("textwrap:re.sub", "is defined as re:sub; give this name"),
    ],
)
def test_what_is_no_tokeniser_is_named(name, told):
    with pytest.raises(InvalidInput, match=told):
        policy(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("unlucky", "2: tokeniser {} failed on a text of 6 characters: ZeroDivisionError$"),
        ("numbered", r"1: tokeniser {} returned a list with int for a text of 7 characters; it m"),
        ("counted", "1: tokeniser {} returned int for a text of 7 characters"),
        ("with_nul", "1: tokeniser {} returned a word with NUL or a lone surrogate"),
        ("with_surrogate", "1: tokeniser {} returned a word with NUL or a lone surrogate"),
        ("endless", "1: tokeniser {} returned 7,168 words of 50,176 characters or more for a text"),
        (
            "endless_blanks",
            "1: .* 51,200 words of 0 characters .* must be at most 50,350$",
        ),
        ("huge", "1: .* 1 word of 70,000,000 characters or more for a text of 7 characters"),
    ],
)
def test_failures_of_a_function_make_a_bad_shard(name, told, tmp_path):
    (tmp_path / "a.txt").write_text("sea law\nsea 13\n")
    (shard,) = list_shards([str(tmp_path / "a.txt")])
    own = policy(f"own_words:{name}")
    words = Vocabulary(("sea",), 1, own.fingerprint)
    told = "a.txt: document " + told.format(f"own_words:{name}")
    # one document at a time, too
    for limits in (ReadLimits(), ReadLimits(batch_documents=1)):
        with pytest.raises(ShardError, match=told):
            list(read_shard(shard, ShardFormat(), words, own, limits))
        with pytest.raises(ShardError, match=told):
            sample_shard(shard, ShardFormat(), own, 9, 0, limits)
    with pytest.raises(TokeniserFailed, match=f"^tokeniser own_words:{name}"):
        own.tokens("sea 13")


def test_failures_keep_their_document_between_processes():
    failed = TokeniserFailed("tokeniser a:b failed", 3)
    copied = pickle.loads(pickle.dumps(failed)).after(4)
    assert (str(failed), str(copied)) == (
        "document 3: tokeniser a:b failed",
        "document 7: tokeniser a:b failed",
    )


def test_many_words_of_one_text_are_words():
    """All pieces of one to six letters, as language identification uses them."""
    text = "sea law " * 500
    found = words_by(own_words.pieces, "pieces", text)
    assert len(found) == 6 * len(text) - 15


def test_another_version_of_a_function_is_refused(monkeypatch):
    own = policy("own_words:by_blanks")
    registry.tokeniser_called.cache_clear()
    monkeypatch.setattr(own_words.by_blanks, "version", "2")
    assert not own.runs_here
    with pytest.raises(TokeniserMissing, match="by_blanks of version 1, .* has version 2"):
        own.tokens("sea")
    registry.tokeniser_called.cache_clear()


@pytest.fixture
def elsewhere(monkeypatch):
    """On another machine, a function has other code under the same version."""

    def changed():
        monkeypatch.setattr(own_words.by_blanks, "__code__", own_words.reversed_words.__code__)
        registry.probed.cache_clear()

    registry.probed.cache_clear()
    yield changed
    monkeypatch.undo()
    registry.probed.cache_clear()


def test_a_worker_with_other_code_is_refused(elsewhere):
    own, texts = policy("own_words:by_blanks"), pa.array(["sea law"])
    index = index_of(own, "law", "sea")
    sent = pickle.dumps(index)
    assert pickle.loads(sent).counted(texts).batch.lengths.tolist() == [2]
    elsewhere()
    with pytest.raises(TokeniserMissing, match="of version 1 finds other words on the machine"):
        pickle.loads(sent).counted(texts)
    # the order of words may differ, as that of a set
    assert len(registry.probed("own_words:unordered")) == 64


@pytest.mark.parametrize("name", ["nowhere_at_all:cut", "own_words:unmarked", "textwrap:re.sub"])
def test_a_store_counts_with_no_function_that_its_author_did_not_mark(name):
    """A stranger writes any name and version into a store."""
    named = TokenPolicy.from_json({**EARLIER, "tokeniser": {"name": name, "version": "1"}})
    assert not named.runs_here
    with pytest.raises(TokeniserMissing):
        named.tokens("sea")


def test_memory_that_is_short_is_no_fault_of_a_document():
    with pytest.raises(MemoryError):
        policy("own_words:short_of_memory").tokens("sea")


def test_words_of_functions_are_no_phrases():
    texts = pa.array(["new york", "new_york new", "new york_times"])
    for name in ("own_words:by_blanks", r"regex:[\w+#]+"):
        own = policy(name, phrases=["new york"])
        tokens = [own.tokens(text) for text in texts.to_pylist()]
        assert tokens == [["new_york"], ["new-york", "new"], ["new", "york-times"]]
        terms = "new", "new-york", "new_york", "york-times"
        batch, outside = count_column(texts, index_of(own, *terms))
        assert batch.to_csr().toarray().tolist() == [[0, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]
        assert outside == 0
        with pytest.raises(InvalidInput, match="'snake_case' with '_', which joins the words"):
            policy(name, phrases=["snake_case word"])
        with pytest.raises(InvalidInput, match="stop word 'an_id' has '_', which joins"):
            policy(name, phrases=["new york"], extra_stop_words=["an_id"])


def test_a_function_is_named_only_if_others_can_import_it():
    assert name_of(own_words.by_blanks) == "own_words:by_blanks"
    for function in (lambda text: text.split(), str.split):
        with pytest.raises(InvalidInput, match="cannot import the tokeniser"):
            name_of(function)


def test_stop_words_are_spelled_as_the_tokeniser_spells_them():
    own = TokenPolicy.for_languages(
        ["none"], 1, extra_stop_words=["New York"], tokeniser="own_words:by_commas"
    )
    assert own.stop_words == ("New York", "new", "york")
    assert own.tokens("New York, sea") == ["sea"]
    auto = TokenPolicy.for_languages(["auto"], tokeniser="regex:[a-z']+")
    found = auto.in_languages(["english"])
    assert (auto.seeks_languages, found.languages) == (True, ("english",))
    assert found.tokens("We don't see the sea") == ["sea"]


def test_each_name_belongs_to_one_family():
    names = [name for one in FAMILIES for name in (one.name, one.also) if name]
    assert len(names) == len({*names})
    assert {one.name for one in FAMILIES if one.also} <= {*LANGUAGE_MAPPING.values(), "thai"}
    assert tokeniser_called("words").version == "1"


@pytest.mark.parametrize(
    ("name", "package", "text", "expected"),
    [
        ("zh", "rjieba", "我们在北京大学学习,ABC 2024年。", ["我们", "北京大学", "学习", "abc"]),
        ("ja", "sudachidict_small", "東京でLinuxを学んでいます。", ["東京", "linux", "学ぶ"]),
        ("ko", "kiwipiepy", "저는 한국어를 공부했습니다.", ["한국어", "공부"]),
        ("th", "pythainlp", "ผมรักประเทศไทย 3", ["รัก", "ประเทศ", "ไทย"]),
        ("lemmas:de", "simplemma", "Die Häuser gingen unter", ["haus", "gehen"]),
        ("stems:en", "snowballstemmer", "The sailing houses", ["sail", "hous"]),
    ],
)
def test_languages_are_cut_by_their_libraries(name, package, text, expected):
    pytest.importorskip(package)
    own = TokenPolicy.for_languages(["auto"], tokeniser=name)
    assert [word for word in own.tokens(text) if word != "ผม"] == expected
    tokeniser = tokeniser_called(name)
    assert own.tokeniser == tokeniser.name == tokeniser_called(tokeniser.name).name
    assert own.languages == (tokeniser.language,)
    assert package.split("_")[0].split("dict")[0] in own.tokeniser_version
    # what a tokeniser drops, or a library cannot take at once, makes no word
    assert own.words("") == own.words("\n 12 , \u0301 ") == []
    assert own.words(f"{text}\n" * 3_000)[:1] == own.words(text)[:1]
    batch, _ = count_column(pa.array([text, None]), index_of(own, *expected))
    assert batch.lengths.tolist() == [len(expected), 0]


def test_thai_has_the_stop_words_of_its_library(monkeypatch):
    pytest.importorskip("pythainlp")
    own = TokenPolicy.for_languages(["th"], tokeniser="thai")
    assert own.languages == ("thai",)
    assert own == TokenPolicy.for_languages(["auto"], tokeniser="thai")
    assert own.tokens("ทะเลและประเทศไทย") == ["ทะเล", "ประเทศ", "ไทย"]
    monkeypatch.setitem(sys.modules, "pythainlp.corpus", None)
    with pytest.raises(InvalidInput, match=r"streaming-moments\[thai\]"):
        TokenPolicy.for_languages(["thai"])


@pytest.mark.parametrize("name", ["lemmas:latvianese", "stems:latvianese"])
def test_a_language_without_lemmas_or_stems_is_named(name):
    pytest.importorskip({"l": "simplemma", "s": "snowballstemmer"}[name[0]])
    with pytest.raises(InvalidInput, match="for language 'latvianese'"):
        policy(name)


@pytest.mark.parametrize("family", [one.name for one in FAMILIES if one.also])
def test_a_missing_library_names_its_extra(family, monkeypatch):
    packages = {"chinese": "rjieba", "japanese": "sudachidict_small", "korean": "kiwipiepy"}
    module = packages.get(family, "pythainlp.tokenize")
    registry.tokeniser_called.cache_clear()
    japanese._dictionary.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidInput, match=rf"streaming-moments\[{family}\]"):
        policy(family)

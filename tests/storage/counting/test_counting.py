"""Counting by the kernels: columns count exactly as with the reference tokeniser."""

import io
import sys
import unicodedata
import uuid
from collections import Counter
from itertools import accumulate, product

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.counting import SpelledTexts, WordIndex, count_column
from streaming_moments.storage.counting.passages import Passages, words_in
from streaming_moments.storage.counting.reading import count_texts, read_shard
from streaming_moments.storage.counting.tokeniser import token_kernels
from streaming_moments.storage.counting.tokeniser.code_points import symbols as symbols_of_points
from streaming_moments.storage.counting.tokeniser.words import folded_text, words
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import Position, ReadLimits
from streaming_moments.storage.formats.text_chunks import TextPiece, buffers, encoded, in_chunks
from streaming_moments.storage.shards import Shard, ShardFormat

# Each line has its own way of going wrong: composition and order of marks, folds to several
# letters or to a mark, final sigma, jamo, marks of class 0 and above, joiners, planes above 0.
ALPHABETS = [
    "abeosqZÀéßẞ\u017f \t,'3",
    "aeiouyAE <=>\u0300\u0301\u0302\u0307\u0308\u030c\u0323\u0327\u0328\u0338\u0344\u0345",
    "iIİ\u0131jǰJ\u0307\u030cŉ\u02bcn\u0149ẖ ",
    "ΑΣσςοΟΐΰᾳᾼῼάά\u0313\u0345Ωµ ",
    "ﬁﬀﬃﬅfist\u017f ",
    "\u1100\u1112\u1161\u1175\u11a8\u11c2가각힣ㄱ ",
    "कखनरळड़\u093c\u094dािी\u0902\u0958\u095c\u0931।  ",
    "কঙড\u09bc\u09be\u09c7\u09d7\u09cb ொ\u0bbe\u0bc6க",
    "👩\u200d👧\ufe0f\u200c\u00ad\u00a0\x00ab\U000e0100",
    "\U00010400\U00010428\U0001d518\U0001e921𠀀\U0002f800\U000114b9\U000114ba\U000114b0 ",
    "שלום\u05bc\u05b0\u05c1\ufb2a عرب\u0651\u064e\u0654",
    "ԵՒև\u0587եւ ꭰᎠⱥȺ\u2126\u212a\u212b豈ゕか\u3099 ",
]
KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
texts_of = st.one_of(
    st.text(max_size=20),
    *(st.text(alphabet, max_size=20) for alphabet in ALPHABETS),
    st.text("".join(ALPHABETS), max_size=30),
    st.lists(st.sampled_from(["sea", "seas", "Sea", "SEASIDE", "seasidelong" * 3, "straße"])).map(
        " ".join
    ),
)


def reference(
    texts: list[str], vocabulary: Vocabulary, policy: TokenPolicy
) -> tuple[CountBatch, int]:
    passages = [passage for text in texts for passage in policy.passages(text)]
    rows = np.array([vocabulary.index.get(t, -1) for p in passages for t in p], dtype=np.int64)
    offsets = np.array([0, *accumulate(map(len, passages))])
    batch = CountBatch.from_rows(offsets, rows, None, vocabulary.n_words, vocabulary.fingerprint)
    return batch, int(np.count_nonzero(rows < 0))


def assert_same(counted: tuple[CountBatch, int], expected: tuple[CountBatch, int]) -> None:
    for name in ("indptr", "words", "counts"):
        one, two = getattr(counted[0], name), getattr(expected[0], name)
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    assert counted[0].n_words == expected[0].n_words
    assert counted[0].vocabulary == expected[0].vocabulary
    assert counted[1] == expected[1]


def table_of(texts: list[str], slots: int | None, policy: TokenPolicy) -> WordIndex:
    return index_of({word for text in texts for word in words(text)}, slots, policy)


def index_of(found: set[str], slots: int | None, policy: TokenPolicy) -> WordIndex:
    terms = sorted(found) or ["sea"]
    vocabulary = Vocabulary(tuple(terms), 1, policy.fingerprint)
    return WordIndex.of(vocabulary, policy, slots)


@st.composite
def settings_of(draw: st.DrawFn, texts: list[str]) -> tuple[Vocabulary, TokenPolicy]:
    found = sorted({word for text in texts for word in words(text)})
    some = st.lists(st.sampled_from(found), unique=True) if found else st.just([])
    stopped = sorted(word for word in draw(some) if words(word) == [word])
    policy = TokenPolicy(
        draw(st.integers(1, 4)),
        tuple(stopped),
        draw(st.sampled_from([None, 1, 2, 3, 7])),
    )
    # Also what no tokeniser returns: empty, in capitals, with spaces, NUL or half a pair in it.
    prefixes = [word[:size] for word in draw(some) for size in range(1, len(word) + 1)]
    odd = draw(st.lists(st.sampled_from(["", "Sea", "a b", "a\x00", "\x00", "\ud800", "sea"])))
    terms = tuple(dict.fromkeys([*draw(some), *prefixes, *odd, "law"]))
    return Vocabulary(terms, 1, policy.fingerprint), policy


@settings(max_examples=300)
@given(st.data(), st.lists(texts_of, max_size=6))
def test_counts_are_those_of_the_reference(data: st.DataObject, texts: list[str]) -> None:
    vocabulary, policy = data.draw(settings_of(texts))
    expected = reference(texts, vocabulary, policy)
    # The smallest table has one free slot or few: nearly every look-up passes over other words.
    keys = vocabulary.n_words + len(policy.stop_words)
    for slots in (None, 1 << keys.bit_length()):
        index = WordIndex.of(vocabulary, policy, slots)
        for kind in KINDS:
            column = pa.array([text.encode() for text in texts], pa.large_binary()).cast(kind)
            assert_same(count_column(column, index), expected)
    read = count_texts(iter(texts), vocabulary, policy)
    assert_same((read.batch, read.outside), expected)


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.none() | texts_of, max_size=4), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 9),
    st.sampled_from(KINDS[:2]),
)
def test_columns_in_chunks_in_slices_and_with_nulls(
    chunks: list[list[str | None]], start: int, length: int, kind: pa.DataType
) -> None:
    policy = TokenPolicy(1, passage_words=3)
    index = table_of([text or "" for chunk in chunks for text in chunk], None, policy)
    column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
    whole = column.combine_chunks().slice(start, length)
    for part in (column, column.slice(start, length), whole, pa.array(whole.to_pylist(), kind)):
        texts = [text or "" for text in part.to_pylist()]
        assert_same(count_column(part, index), reference(texts, index.vocabulary, policy))


def test_half_a_surrogate_pair_parts_words() -> None:
    vocabulary, policy = Vocabulary(("sea", "law"), 1), TokenPolicy()
    texts = ["sea\ud800law", "\udfff", "e\ud800\u0301"]
    read = count_texts(texts, vocabulary, policy)
    assert_same((read.batch, read.outside), reference(texts, vocabulary, policy))


def every_point() -> list[str]:
    return [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]


def assert_word_for_word(texts: list[str]) -> None:
    """Each passage has one word, so the columns of the batch are the words in order."""
    policy = TokenPolicy(min_length=1, passage_words=1)
    expected = [words(text) for text in texts]
    index = index_of({word for found in expected for word in found}, None, policy)
    batch, outside = count_column(encoded(texts), index)
    rows = [index.vocabulary.index[word] for found in expected for word in found]
    assert outside == 0
    np.testing.assert_array_equal(batch.words, rows)
    passages = np.array([max(len(found), 1) for found in expected])
    starts = np.concatenate([[0], np.cumsum(passages)])
    holding = np.repeat([len(found) > 0 for found in expected], passages)
    assert batch.documents == starts[-1]
    np.testing.assert_array_equal(np.diff(batch.indptr), holding)


def test_every_code_point() -> None:
    assert_word_for_word([f"x{char}y" for char in every_point()])


@pytest.mark.parametrize("around", ["{}", "e{}\u0301", "{}\u094d\u093c", "\u09c7\u0301{}"])
def test_every_character(around: str) -> None:
    found = [char for char in every_point() if unicodedata.category(char) not in ("Cn", "Co")]
    assert_word_for_word([around.format(char) for char in found])


def test_the_symbols_of_the_basic_plane_begin_those_of_all_points() -> None:
    for basic, whole in zip(symbols_of_points(0xFFFF), symbols_of_points(), strict=True):
        np.testing.assert_array_equal(basic, whole[: 1 << 16])


def test_what_is_of_the_basic_plane_may_fold_to_what_is_beyond() -> None:
    texts = ["\ufa6c q", "\ufad5"]
    assert max("".join(texts)) <= "\uffff" < max(folded_text("".join(texts)))
    assert_word_for_word(texts)


def test_everything_that_is_composed() -> None:
    parts = [(char, unicodedata.normalize("NFD", char)) for char in every_point()]
    parted = [decomposed for char, decomposed in parts if char != decomposed]
    assert_word_for_word([f"q{whole}q" for whole in parted])
    assert_word_for_word([f"{whole[0]}\u0327{whole[1:]}\u0301" for whole in parted])
    assert_word_for_word([whole[::-1] + whole for whole in parted])


def test_every_pair_of_what_is_not_simple() -> None:
    # One of each kind of symbol: what is known of it but for how it is spelled.
    symbols = symbols_of_points()[0]
    kinds, firsts = np.unique(symbols >> np.uint64(32), return_index=True)
    assert 60 < kinds.size < 300
    some = [chr(point) for point in firsts.tolist()] + list("aeAq <\u093c\u0928\u09be\u1161")
    assert_word_for_word(["a" + "".join(pair) for pair in product(some, repeat=2)])
    marks = [char for char in some if unicodedata.combining(char)][::4]
    assert_word_for_word(["".join(run) for run in product("eq", marks, marks, "b\u0301")])


SPELLED = {
    "Plain, PLAIN": False,
    "ÉCOLE straße \u0301a": False,
    "e\u0301": True,
    "aé e\u0301": True,
    "हिन्दी न\u093c": True,
    "हिन्दी बड़ा": False,
    "é=\u0338 ": True,
    "": False,
    "İ": True,
    "q\u0323\u0307 \u0323": False,
    "q\u0307\u0323": True,
}


def test_spell_is_the_words_with_a_zero_after_each() -> None:
    data, offsets = buffers(encoded(list(SPELLED)))
    lanes, begins, hard = token_kernels.spell(data, offsets, symbols_of_points()[0])
    assert hard.tolist() == list(SPELLED.values())
    content = lanes.astype("<u8").tobytes()
    for text, is_hard, start, stop in zip(SPELLED, hard, begins[:-1], begins[1:], strict=True):
        expected = "" if is_hard else "".join(word + "\x00" for word in words(text))
        assert content[start:stop].decode() == expected


def test_spelling_at_its_longest_stays_within_its_buffer() -> None:
    texts = ["\u0587"] * 10_000
    lanes, begins, hard = token_kernels.spell(*buffers(encoded(texts)), symbols_of_points()[0])
    assert not hard.any()
    assert begins[-1] == 5 * len(texts) <= lanes.nbytes - 16


@given(st.lists(st.binary(max_size=20), max_size=40), st.integers(0, 3))
@example([b"", b"\x00", b"a\x00", b"a", b"a", b"aaaaaaaa", b"aaaaaaaaa"], 0)
def test_index_keys_is_a_dictionary(keys: list[bytes], more: int) -> None:
    slots = np.zeros((1 << (len(keys).bit_length() + more), 2), dtype=np.uint64)
    data, offsets = buffers(pa.array(keys, pa.large_binary()))
    pool, starts = token_kernels.index_keys(data, offsets, slots)
    expected = {key: last for last, key in enumerate(keys) if key and b"\x00" not in key}
    found = {}
    for first, meta in slots[slots[:, 0] != 0].tolist():
        key, lanes = meta & 0xFFFFFFFF, pool[starts[meta & 0xFFFFFFFF] :][: meta >> 32]
        assert lanes[0] == first
        found[lanes.astype("<u8").tobytes().rstrip(b"\x00")] = key
    assert found == expected


def test_the_largest_vocabulary_row_and_long_words() -> None:
    terms = tuple(
        f"{'ab'[i % 2]}{'xyz' * (i % 30)}{chr(97 + i // 676)}{chr(97 + i // 26 % 26)}"
        f"{chr(97 + i % 26)}"
        for i in range(9000)
    )
    policy = TokenPolicy(passage_words=50)
    vocabulary = Vocabulary(tuple(dict.fromkeys(terms)), 1, policy.fingerprint)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(terms, 400)) + " " + "é" * 5000 for _ in range(20)]
    texts.append(vocabulary.terms[-1] + " " + vocabulary.terms[0])
    index = WordIndex.of(vocabulary, policy)
    assert_same(count_column(encoded(texts), index), reference(texts, vocabulary, policy))


def sizes(texts: list[str], chunk_bytes: int, chunk_rows: int) -> list[list[str]]:
    chunks: list[list[str]] = []
    for text in texts:
        held = sum(len(other.encode()) for other in chunks[-1]) if chunks else 0
        room = held + len(text.encode()) <= chunk_bytes
        if chunks and room and len(chunks[-1]) < chunk_rows:
            chunks[-1].append(text)
        else:
            chunks.append([text])
    return chunks


@given(
    st.lists(st.lists(st.text("aé", max_size=6), max_size=6), max_size=5),
    st.integers(1, 12),
    st.integers(1, 5),
)
def test_chunks_are_those_of_a_greedy_reader(
    arrays: list[list[str]], chunk_bytes: int, chunk_rows: int
) -> None:
    before = accumulate(map(len, arrays), initial=1)
    pieces = [
        TextPiece(pa.array(texts, pa.large_string()), str, lambda n, b=b: Position(b + n), "")
        for texts, b in zip(arrays, before, strict=False)
    ]
    limits = ReadLimits(batch_bytes=chunk_bytes, batch_documents=chunk_rows)
    found = [(chunk.to_pylist(), after) for chunk, after in in_chunks(pieces, limits)]
    expected = sizes([text for texts in arrays for text in texts], chunk_bytes, chunk_rows)
    assert [chunk for chunk, _ in found] == expected
    passed = list(accumulate(map(len, expected)))
    assert [after.passed for _, after in found] == passed


def put_parquet(column: pa.Array, rows: int) -> Shard:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": column}), stream, row_group_size=rows)
    path = f"/{uuid.uuid4().hex}/a.parquet"
    fsspec.filesystem("memory").pipe(path, stream.getvalue())
    return Shard(f"memory://{path}", len(stream.getvalue()))


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_batches_passed_over(kind: pa.DataType) -> None:
    texts = [f"sea law {'ship ' * (i % 5)} été" for i in range(700)]
    policy = TokenPolicy(passage_words=2)
    vocabulary = Vocabulary(("law", "été"), 1, policy.fingerprint)
    shard = put_parquet(pa.array([*texts, None]).cast(kind), 300)
    limits = ReadLimits(batch_bytes=2000)
    form = ShardFormat()
    reads = list(read_shard(shard, form, vocabulary, policy, limits))
    assert len(reads) > 5
    for first in (1, 3, len(reads) - 1):
        start = reads[first - 1].after
        rest = list(read_shard(shard, form, vocabulary, policy, limits, start=start))
        assert len(rest) == len(reads) - first
        for one, two in zip(rest, reads[first:], strict=True):
            assert_same((one.batch, one.outside), (two.batch, two.outside))


@pytest.mark.parametrize(
    "wrong", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\xa4", b"\x80"]
)
def test_bytes_that_are_not_utf8_never_reach_a_kernel(wrong: bytes) -> None:
    policy = TokenPolicy()
    vocabulary = Vocabulary(("law",), 1, policy.fingerprint)
    column = pa.array([b"law"] * 600 + [b"sea " + wrong, b"law"]).view(pa.string())
    shard = put_parquet(column, 500)
    with pytest.raises(ShardError, match="row 601 is not UTF-8: its byte 4"):
        list(read_shard(shard, ShardFormat(), vocabulary, policy))


def test_a_text_of_many_kinds_counts_as_a_counter() -> None:
    texts = ["".join(ALPHABETS), " ".join("".join(ALPHABETS)), "\n".join(ALPHABETS) * 3]
    policy = TokenPolicy(min_length=1)
    index = table_of(texts, None, policy)
    batch, _ = count_column(encoded(texts), index)
    dense: NDArray[np.int64] = batch.to_csr().toarray()
    for row, text in zip(dense, texts, strict=True):
        expected = Counter(policy.tokens(text))
        assert row.tolist() == [expected[term] for term in index.vocabulary.terms]


@given(st.lists(texts_of, max_size=6), st.sampled_from([None, 1, 2, 3]))
@example(["", "a b c", "", "ﬁ\u0301 x", "d"], 2)
@example(["1, 2"], None)
def test_passages_are_those_of_the_reference(texts: list[str], passage_words: int | None) -> None:
    policy = TokenPolicy(passage_words=passage_words)
    found = Passages.of(SpelledTexts.of(encoded(texts), policy), passage_words)
    expected = [passage for text in texts for passage in policy.cut(words(text))]
    assert [words_in(found[place]) for place in range(len(found))] == expected

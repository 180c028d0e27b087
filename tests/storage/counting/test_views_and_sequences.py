"""Shards of views and of sequences: every layout, any cut, and refused shards."""

import gzip
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brute_halves import odd_document, odd_row

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.pieces import keys_of
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.storage.counting.symbols import sequences as reading
from streaming_moments.storage.counting.symbols.sequences import SequenceReader, SequencesForm
from streaming_moments.storage.counting.symbols.symbol_samples import sample_symbols
from streaming_moments.storage.counting.views import ViewReader, ViewsForm, sample_rows
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

LETTERS = Vocabulary(tuple("abc "), 4)
LONG = ("name", "time", "symbol")


def listed(path):
    [shard] = list_shards([str(path)])
    return shard


def counted(path, form, alphabet=LETTERS, limits=ReadLimits(), by_content=True):
    """Statistics of a shard, and the number of symbols outside of the alphabet."""
    n = alphabet.n_words
    foundation = SequencesFoundation(
        alphabet, Basis(np.eye(n, dtype=np.int8), n, alphabet.fingerprint)
    )
    reader = SequenceReader.of(ShardFormat(), form, alphabet, limits, by_content=by_content)
    read = list(reader.read(listed(path)))
    prepared = [foundation.prepared(one.batch) for one in read]
    return foundation.of(prepared), sum(one.outside for one in read), foundation


def of_texts(foundation, texts, names=None, size=None):
    """Expected statistics; halves depend on symbols or names, or alternate from a size on."""
    alphabet = foundation.alphabet.index
    symbols = [[alphabet.get(one, -1) for one in text] for text in texts]
    odd = np.array([odd_row(one) for one in symbols])
    if names is not None:
        odd = keys_of(names)[:, 0] % 2 == 1
    if size is not None:
        odd = (np.arange(len(texts)) + size) % 2 == 1
    return foundation.of_sequences(SymbolBatch.of(symbols, odd))


TEXTS = ["abca bca", "ab", "aXbcc", "", "c" * 9]


def test_every_layout_of_the_same_sequences_counts_the_same(tmp_path):
    lines = tmp_path / "a.txt"
    lines.write_text("\n".join(TEXTS).upper())
    strings, lists = tmp_path / "b.parquet", tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": TEXTS}), strings)
    pq.write_table(pa.table({"s": [list(text) for text in TEXTS]}), lists, row_group_size=2)
    table = tmp_path / "d.csv.gz"
    rows = [
        f"{number},{time},{symbol}\n"
        for number, text in enumerate(TEXTS)
        for time, symbol in enumerate(text)
    ]
    table.write_bytes(gzip.compress(("name,time,symbol\n" + "".join(rows)).encode()))
    numbers = tmp_path / "e.parquet"
    ids = {"a": 11, "b": 12, "c": 13, " ": 14, "X": 15}
    pq.write_table(pa.table({"s": [[ids[one] for one in text] for text in TEXTS]}), numbers)
    digits = Vocabulary(("11", "12", "13", "14"), 4)
    for path, form, texts, alphabet in (
        (lines, SequencesForm(), TEXTS, LETTERS),
        (strings, SequencesForm(), TEXTS, LETTERS),
        (lists, SequencesForm(columns=("s",)), TEXTS, LETTERS),
        # an empty sequence has no row
        (table, SequencesForm(columns=LONG), [one for one in TEXTS if one], LETTERS),
        (numbers, SequencesForm(columns=("s",)), TEXTS, digits),
    ):
        found, outside, foundation = counted(path, form, alphabet)
        if alphabet is digits:
            texts = [[str(ids[one]) for one in text] for text in texts]
        names = [str(number) for number, text in enumerate(TEXTS) if text]
        expected = of_texts(foundation, texts, names if path is table else None)
        assert found == expected, path.name
        in_turn = counted(path, form, alphabet, by_content=False)[0]
        assert in_turn == of_texts(foundation, texts, size=listed(path).size), path.name
        assert outside == 1
        assert found.totals.without == sum(len(one) < 3 for one in texts)


def test_words_are_symbols_too(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("The sea, the  SHIP!\n\nsea the Sea the\n")
    words = Vocabulary(("the", "sea", "ship"), 3)
    found, outside, _ = counted(path, SequencesForm("words"), words)
    assert outside == 0
    assert found.totals.n_tokens == 8
    assert found.totals.n_documents == 3
    assert found.totals.triples == 4


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_long_sequences_are_counted_in_pieces(tmp_path, monkeypatch, piece):
    """For sequences of any length, and any cut of a table within them."""
    rng = np.random.default_rng(piece)
    texts = ["".join(rng.choice(list("abcX"), length)) for length in (40, 1, 3, 25, 2)]
    plain, table = tmp_path / "a.txt", tmp_path / "b.tsv"
    plain.write_text("\n".join(texts))
    rows = [
        f"s{number}\t{time / 4}\t{symbol}\n"
        for number, text in enumerate(texts)
        for time, symbol in enumerate(text)
    ]
    table.write_text("name\ttime\tsymbol\n" + "".join(rows))
    monkeypatch.setattr(reading, "PIECE", piece)
    for path, form in ((plain, SequencesForm()), (table, SequencesForm(columns=LONG))):
        limits = ReadLimits(document_bytes=100, batch_bytes=8 * 11, batch_documents=5)
        found, outside, foundation = counted(path, form, limits=limits)
        names = [f"s{number}" for number in range(len(texts))]
        assert found == of_texts(foundation, texts, names if path is table else None)
        in_turn = counted(path, form, limits=limits, by_content=False)[0]
        assert in_turn == of_texts(foundation, texts, size=listed(path).size)
        assert outside == "".join(texts).count("X")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["a,1,x", "b,1,x", "a,2,x"], "'a' are not consecutive"),
        (["a,2,x", "a,1,x"], "sort the rows by 'name' and 'time'"),
        (["a,1,x", "a,1,y"], "'a' are not consecutive"),
        (["a,,x", "a,1,y"], "give both in each row"),
        ([",1,x"], "give both in each row"),
    ],
)
def test_rows_that_are_not_in_order_are_refused(tmp_path, rows, told):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["name,time,symbol", *rows]) + "\n")
    with pytest.raises(ShardError, match=told):
        counted(path, SequencesForm(columns=LONG))


def test_columns_that_hold_no_sequences_are_refused(tmp_path):
    path, lines = tmp_path / "a.parquet", tmp_path / "a.dat"
    pq.write_table(pa.table({"s": ["ab"], "x": [[0.5]]}), path)
    lines.write_text("1 0:1\n")
    with pytest.raises(ShardError, match="not lists of symbols"):
        counted(path, SequencesForm(columns=("s",)))
    with pytest.raises(ShardError, match="group other numbers into classes"):
        counted(path, SequencesForm(columns=("x",)))
    with pytest.raises(ShardError, match=r"has no column 'y'.*--columns"):
        counted(path, SequencesForm(columns=("y",)))
    with pytest.raises(ShardError, match="without an order"):
        counted(lines, SequencesForm())
    with pytest.raises(ShardError, match="is of format lda-c|no columns"):
        counted(lines, SequencesForm(columns=("s",)))
    with pytest.raises(InvalidInput, match=r"have 2 columns"):
        SequencesForm(columns=("a", "b"))


@pytest.fixture
def table():
    return pa.table(
        {
            "title": ["law and SEA", None, "sea sea", "ship"],
            "tags": pa.array([[1, 2], [2], None, [9]]),
            "kind": pa.array(["x", "y", "x", ""]).dictionary_encode(),
        }
    )


def view_reader(columns=("title:text", "tags", "kind"), limits=ReadLimits()):
    form = ViewsForm.parse(columns)
    words = (
        Vocabulary(("sea", "law"), 2, form.policy.fingerprint),
        Vocabulary(("2", "1"), 2),
        Vocabulary(("x", "y"), 2),
    )
    return ViewReader.over(ShardFormat(), form, words, limits)


def test_views_are_counted_with_what_lacks_and_what_lies_outside(tmp_path, table):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=3)
    for limits in (ReadLimits(), ReadLimits(batch_documents=1)):
        read = list(view_reader(limits=limits).read(listed(path)))
        views = [
            np.vstack([one.batch.views[place].to_csr().toarray() for one in read])
            for place in range(3)
        ]
        assert views[0].tolist() == [[1, 1], [0, 0], [2, 0], [0, 0]]
        assert views[1].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]]
        assert views[2].tolist() == [[1, 0], [0, 1], [1, 0], [0, 0]]
        # "and", "ship" and 9; what lacks is none of these
        assert sum(one.outside for one in read) == 3
        odd = np.concatenate([one.batch.odd for one in read])
        assert odd.tolist() == [(listed(path).size + i) % 2 == 1 for i in range(4)]
        by_content = replace(view_reader(limits=limits), by_content=True).read(listed(path))
        told = np.concatenate([one.batch.odd for one in by_content])
        whole = np.hstack(views).tolist()
        assert told.tolist() == [odd_document(dict(enumerate(row))) for row in whole]


def test_csv_holds_views_as_well(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('kind,tags,other,title\nx,2,,"law, sea"\ny,,z,sea\n')
    [read] = view_reader().read(listed(path))
    assert read.batch.rows.to_csr().toarray().tolist() == [[1, 1], [1, 0]]
    assert read.batch.left.to_csr().toarray().tolist() == [[1, 0], [0, 0]]
    assert read.batch.triples.tolist() == [2, 0]


def test_columns_that_are_no_views_are_refused(tmp_path, table):
    path = tmp_path / "a.parquet"
    pq.write_table(table.append_column("x", pa.array([0.5, 1, 2, 3])), path)
    with pytest.raises(ShardError, match="group other numbers into classes"):
        list(view_reader(("title:text", "tags", "x")).read(listed(path)))
    with pytest.raises(ShardError, match="has no column 'y'"):
        list(view_reader(("title:text", "tags", "y")).read(listed(path)))
    with pytest.raises(InvalidInput, match="three different columns"):
        ViewsForm.parse(["a", "b"])
    with pytest.raises(InvalidInput, match="three different columns"):
        ViewsForm.parse(["a", "b", "a:text"])


def test_rows_of_a_pilot_are_drawn_evenly_and_in_order(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path, row_group_size=100)
    shard, form = listed(path), ShardFormat()
    drawn = sample_rows(shard, form, ["n"], 100, 0, ReadLimits(batch_documents=64))["n"].to_pylist()
    assert len(drawn) == 100
    assert drawn == sorted(set(drawn))
    assert 350 < np.mean(drawn) < 650
    assert len(sample_rows(shard, form, ["n"], 5_000, 0)) == 1000


def test_a_pilot_holds_fewer_rows_where_these_are_long(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"n": [f"{place:04d} {'long ' * 100}" for place in range(1000)]})
    pq.write_table(table, path, row_group_size=100)
    limits, many = ReadLimits(batch_documents=64, pilot_bytes=20_000), []
    for seed in range(20):
        drawn = sample_rows(listed(path), ShardFormat(), ["n"], 500, seed, limits)
        assert drawn.nbytes <= limits.pilot_bytes
        many += [int(text[:4]) for text in drawn["n"].to_pylist()]
    assert len(many) > 20 * 30
    assert 430 < np.mean(many) < 570  # the first are no likelier than the last
    least = ReadLimits(batch_documents=64, pilot_bytes=1)
    assert len(sample_rows(listed(path), ShardFormat(), ["n"], 500, 0, least)) == 1


def test_a_pilot_of_symbols_ends_where_different_ones_take_too_much(tmp_path):
    path = tmp_path / "a.parquet"
    lists = [[f"{place}-{one}" for one in range(100_000)] for place in range(4)]
    pq.write_table(pa.table({"s": lists}), path, row_group_size=1)
    form = SequencesForm(columns=("s",))
    whole = sample_symbols(listed(path), ShardFormat(), form, 10**9)
    assert (len(whole.symbols), whole.sequences) == (400_000, 4)
    few = sample_symbols(listed(path), ShardFormat(), form, 10**9, ReadLimits(pilot_bytes=1000))
    assert len(few.symbols) == few.counts.sum() == 1 << 16
    assert (len(few.pairs), few.sequences) == ((1 << 16) - 1, 1)
    most = ReadLimits(pilot_bytes=11_000_000)  # of what is beyond the first of its pieces
    some = sample_symbols(listed(path), ShardFormat(), form, 10**9, most)
    assert some.sequences == 2
    assert some.symbols == whole.symbols[: len(some.symbols)]

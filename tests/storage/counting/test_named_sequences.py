"""Named sequences: long tables and lists are joined for any cut; gaps and overlaps are errors."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.pieces import keys_of
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.storage.counting.symbols import sequences as reading
from streaming_moments.storage.counting.symbols.sequences import SequenceReader, SequencesForm
from streaming_moments.storage.counting.symbols.symbol_samples import sample_symbols
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

LETTERS = Vocabulary(tuple("abc"), 3)
FOUNDATION = SequencesFoundation(
    LETTERS, Basis(np.eye(3, dtype=np.int8), 3, LETTERS.fingerprint), joins=True
)
LONG, LISTS = ("name", "time", "symbol"), ("name", "from", "symbols")
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
TIMES = {
    "numbers": lambda place: place + 5,
    "fractions": lambda place: place / 4 - 3,
    "texts": lambda place: f"2026-11-23T08:{place:02d}:30",
    "instants": lambda place: MONDAY + timedelta(milliseconds=place * 90),
    "days": lambda place: (MONDAY + timedelta(days=place)).date(),
}


def listed(path):
    [shard] = list_shards([str(path)])
    return shard


def counted(path, form, limits=ReadLimits(document_bytes=400, batch_documents=5)):
    """Statistics of the pieces of a shard."""
    reader = SequenceReader.of(ShardFormat(), form, LETTERS, limits, joins=True)
    return FOUNDATION.of(FOUNDATION.prepared(one.batch) for one in reader.read(listed(path)))


def one_pass(sequences):
    symbols = [[LETTERS.index.get(one, -1) for one in text] for text in sequences.values()]
    odd = keys_of(list(sequences))[:, 0] % 2 == 1
    return FOUNDATION.of_sequences(SymbolBatch.of(symbols, odd))


def drawn(seed):
    rng = np.random.default_rng(seed)
    lengths = [37, 1, 2, 3, 20, 2]
    return {f"s{i}": "".join(rng.choice(list("abcX"), size)) for i, size in enumerate(lengths)}


def rows_of(sequences, time):
    return [
        {"name": name, "time": TIMES[time](place), "symbol": symbol}
        for name, text in sequences.items()
        for place, symbol in enumerate(text)
    ]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("piece", [2, 9])
def test_a_long_table_cut_anywhere_is_that_of_one_pass(tmp_path, monkeypatch, time, piece):
    monkeypatch.setattr(reading, "PIECE", piece)
    rng = np.random.default_rng(piece)
    sequences = drawn(piece)
    rows = rows_of(sequences, time)
    cuts = [0, *sorted(rng.choice(np.arange(1, len(rows)), 7, replace=False)), len(rows)]
    parts = []
    for number, (begin, end) in enumerate(pairwise(cuts)):
        own = rows[begin:end]
        if number % 2 or time in ("instants", "days"):
            path = tmp_path / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(own), path, row_group_size=4)
        else:
            path = tmp_path / f"{number}.csv"
            lines = [",".join(map(str, row.values())) for row in own]
            path.write_text("\n".join([",".join(LONG), *lines, ""]))
        parts.append(counted(path, SequencesForm(columns=LONG, numbered=time == "numbers")))
    order = rng.permutation(len(parts))
    state = sum((parts[place] for place in order), FOUNDATION.of([]))
    state.totals.pieces.require_apart()
    assert not state.totals.pieces.gaps()
    assert FOUNDATION.with_seams(state) == one_pass(sequences)


@pytest.mark.parametrize("numbered", [True, False])
def test_chunks_tell_their_sequence_and_its_number(tmp_path, monkeypatch, numbered):
    monkeypatch.setattr(reading, "PIECE", 9)
    sequences = drawn(4)
    path, rows = tmp_path / "long.parquet", rows_of(sequences, "numbers")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=8)
    form = SequencesForm(columns=LONG, numbered=numbered)
    limits = ReadLimits(document_bytes=400, batch_documents=16)
    reader = SequenceReader.of(ShardFormat(), form, LETTERS, limits, joins=True)
    found = [
        (name, begin, size)
        for one in reader.read(listed(path))
        for name, begin, size in zip(
            one.spans.names, one.spans.places[:, 0].tolist(), one.batch.lengths, strict=True
        )
    ]
    assert len(found) > len(sequences)
    told = [(name, begin + place) for name, begin, size in found for place in range(size)]
    assert [name for name, _ in told] == [row["name"] for row in rows]
    assert not numbered or told == [(row["name"], row["time"]) for row in rows]


def test_pieces_in_lists_lie_where_they_say(tmp_path):
    sequences = drawn(3)
    rows = [
        {"name": name, "from": begin, "symbols": list(text[begin : begin + size])}
        for size, (name, text) in enumerate(sequences.items(), 1)
        for begin in range(0, len(text), size)
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    rows = [rows[place] for place in order] + [{"name": "s9", "from": 0, "symbols": []}]
    state = FOUNDATION.of([])
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows[number::3]), path)
        state = state + counted(path, SequencesForm(columns=LISTS))
    assert FOUNDATION.with_seams(state) == one_pass(sequences)
    pq.write_table(pa.Table.from_pylist([{**rows[0], "from": 0.5}]), path)
    with pytest.raises(ShardError, match="'from' is not a whole number"):
        counted(path, SequencesForm(columns=LISTS))
    # where a number behind it has no place
    for place, kind in ((2**63 - 1, pa.int64()), (2**64 - 1, pa.uint64()), (-(2**62), pa.int64())):
        far = pa.table({"name": ["a"], "from": pa.array([place], kind), "symbols": [["a", "b"]]})
        pq.write_table(far, path)
        with pytest.raises(ShardError, match=f"'from' is {place}"):
            counted(path, SequencesForm(columns=LISTS))


def test_where_times_are_numbers_one_that_is_missing_is_a_gap(tmp_path):
    path = tmp_path / "a.parquet"
    told = [0, 1, 2, 3, 5, 6, 7]
    # the number after that is of another sequence
    table = pa.table({"name": ["x"] * 7 + ["y"] * 2, "time": [*told, 8, 9], "symbol": ["a"] * 9})
    pq.write_table(table, path, row_group_size=1)
    gappy = SequencesForm(columns=LONG, numbered=True)
    for limits in (ReadLimits(), ReadLimits(batch_documents=1), ReadLimits(batch_documents=4)):
        found = counted(path, gappy, limits)
        assert found.totals.pieces.gaps() == ["'x' from 0 to 3 and from 5 to 7"]
        assert FOUNDATION.with_seams(found).totals.triples == 3
        assert FOUNDATION.with_seams(found).totals.n_documents == 2
        # as an order they go on
        assert counted(path, SequencesForm(columns=LONG), limits).totals.triples == 5
    sample = sample_symbols(listed(path), ShardFormat(), SequencesForm(columns=LONG), 100)
    assert (sample.steps, sample.ones) == (7, 6)
    assert SequencesForm.from_json(gappy.to_json()) == gappy


def test_times_that_are_neither_numbers_nor_dates_may_not_go_on(tmp_path):
    state = FOUNDATION.of([])
    for number, times in enumerate((("dawn", "noon"), ("one", "two"))):
        path = tmp_path / f"{number}.csv"
        path.write_text("name,time,symbol\n" + "".join(f"x,{time},a\n" for time in times))
        state = state + counted(path, SequencesForm(columns=LONG))
    with pytest.raises(InvalidInput, match="'x' from anywhere to anywhere twice|overlap"):
        state.totals.pieces.require_apart()


@pytest.mark.parametrize("rows_a_table", [1, 2])
def test_texts_that_rise_while_their_times_fall_are_refused(tmp_path, rows_a_table):
    path = tmp_path / "a.parquet"
    times = ["2026-11-23T08:00:00+01:00", "2026-11-23T08:30:00+02:00"]
    pq.write_table(pa.table([["x"] * 2, times, ["a"] * 2], LONG), path, row_group_size=rows_a_table)
    with pytest.raises(
        ShardError, match="'x' are not consecutive and sorted by 'time'.* one UTC offset"
    ):
        counted(path, SequencesForm(columns=LONG))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_whole_numbers_in_texts_keep_all_digits(tmp_path, suffix):
    path, first = tmp_path / f"a.{suffix}", 2**53
    times = [*range(first, first + 4), first + 7]
    header, row = ("name,time,symbol\n", "x,{},a\n")
    if suffix == "jsonl":
        header, row = "", '{{"name": "x", "time": {}, "symbol": "a"}}\n'
    path.write_text(header + "".join(row.format(time) for time in times))
    found = counted(path, SequencesForm(columns=LONG, numbered=True))
    span = f"from {first} to {first + 3} and from {first + 7} to {first + 7}"
    assert found.totals.pieces.gaps() == [f"'x' {span}"]
    # whole numbers may be followed by others in a later table
    path.write_text(header + "".join(row.format(time) for time in (1, 2, 3, 4, 5, 5.5, 6.25)))
    assert counted(path, SequencesForm(columns=LONG)).totals.triples == 5


def test_a_sequence_may_come_back_wherever_tables_are_cut(tmp_path):
    path = tmp_path / "a.parquet"
    names, times = [*"xxyyxxy"], [1, 2, 1, 2, 3, 4, 3]
    table = pa.table([names, times, [*"abcabca"]], LONG)
    whole = one_pass({"x": "abbc", "y": "caa"})
    for size in (1, 2, 7):
        pq.write_table(table, path, row_group_size=size)
        for numbered in (False, True):
            found = counted(path, SequencesForm(columns=LONG, numbered=numbered))
            assert FOUNDATION.with_seams(found) == whole
    form = SequencesForm(columns=LONG)
    assert sample_symbols(listed(path), ShardFormat(), form, 100).sequences == 4
    # without names to join them by, the second half of x would be a sequence of its own
    with pytest.raises(ShardError, match="'x' are not consecutive"):
        list(SequenceReader.of(ShardFormat(), form, LETTERS).read(listed(path)))


@pytest.mark.parametrize("times", [[False, True], [b"a", b"b"], [[1], [2]]])
def test_times_of_a_type_that_tells_none_are_refused(tmp_path, times):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["x"] * 2, times, ["a"] * 2], LONG), path)
    with pytest.raises(ShardError, match="column 'time' is of type .* is not a time"):
        counted(path, SequencesForm(columns=LONG))

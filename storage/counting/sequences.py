"""Sequences: symbols of texts, of lists or of a long table, in chunks with their context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.faces import LateModule
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import Values, values_of, words_of
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.documents import read_chunks, read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.formats.parquet import is_list
from streaming_moments.storage.shards import Shard, ShardFormat

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LateModule("pyarrow"), LateModule("pyarrow.compute")

Symbols = Literal["characters", "words"]
SYMBOLS: tuple[Symbols, ...] = ("characters", "words")
# Symbols that are made ready at a time: their windows take some 100 bytes each.
PIECE = 1 << 18
_LETTERS = r"[^\p{L}\p{M}\p{N}]+"


@dataclass(frozen=True)
class SequencesForm:
    """Where the symbols of sequences are.

    Parameters
    ----------
    symbols : {"characters", "words"}
        What a symbol of a text is; both are folded to lower case.
    columns : tuple of str
        None: a text is a sequence. One: a column of lists, each a sequence. Three: sequence, time
        and symbol of a long table, in which the rows of a sequence follow one another by time.

    Raises
    ------
    InvalidInput
        Other columns.
    """

    symbols: Symbols = "characters"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.columns) not in (0, 1, 3) or len(set(self.columns)) < len(self.columns):
            raise InvalidInput(
                f"sequences lie in {len(self.columns)} columns; give --columns with the one of "
                "lists, or with sequence,time,symbol of a long table, or none where texts are "
                "sequences"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SequencesForm:
        """The form that `to_json` described."""
        return cls(content["symbols"], tuple(content["columns"]))

    def to_json(self) -> dict[str, Any]:
        """Description that JSON can hold."""
        return {"symbols": self.symbols, "columns": list(self.columns)}


@dataclass(frozen=True, eq=False)
class Sequences:
    """Some consecutive sequences of a shard, the first of which may have begun before.

    Parameters
    ----------
    values : Values
        Their symbols.
    goes_on : bool
        Whether the first continues the last one before.
    """

    values: Values
    goes_on: bool = False


@dataclass(frozen=True, eq=False)
class SequenceReader:
    """Reads the shards of a store of sequences.

    Parameters
    ----------
    form : ShardFormat
        The format of the shards.
    sequences : SequencesForm
        Where the symbols are.
    words : Arrow array
        The alphabet.
    limits, storage_options
        As of any reader.
    """

    form: ShardFormat
    sequences: SequencesForm
    words: pa.LargeStringArray
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        form: ShardFormat,
        sequences: SequencesForm,
        alphabet: Vocabulary,
        limits: ReadLimits = DEFAULT_LIMITS,
        storage_options: Mapping[str, object] | None = None,
    ) -> SequenceReader:
        """The reader of shards whose symbols are of an alphabet."""
        return cls(form, sequences, words_of(alphabet), limits, storage_options)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[SymbolBatch]]:
        """Chunks of the sequences of a shard, of the even and the odd half in turn.

        Raises
        ------
        ShardError
            The shard cannot be read or changed, a column is missing or of another type, or the rows
            of a sequence do not follow one another by time.
        """
        options = self.storage_options
        found = read_sequences(
            shard, self.form, self.sequences, self.limits, options, start, content
        )
        return steadily(self._counted(found, shard.size), shard, options, content)

    def _counted(
        self, found: Iterable[tuple[Sequences, Position]], number: int
    ) -> Iterator[ReadBatch[SymbolBatch]]:
        pieces = _Pieces(number)
        # the last sequence may go on, so that what ends with it is known one later
        waiting: tuple[Sequences, Position] | None = None
        for one in found:
            if waiting is not None:
                yield from self._read(pieces, *waiting, ends=not one[0].goes_on)
            waiting = one
        if waiting is not None:
            yield from self._read(pieces, *waiting, ends=True)

    def _read(
        self, pieces: _Pieces, sequences: Sequences, after: Position, ends: bool
    ) -> Iterator[ReadBatch[SymbolBatch]]:
        values = sequences.values
        symbols = values.places(self.words)
        for batch in pieces.of(values.offsets, symbols, sequences.goes_on, ends):
            outside = int((batch.symbols[batch.own] < 0).sum())
            yield ReadBatch(batch, outside, after)


def read_sequences(
    shard: Shard,
    form: ShardFormat,
    sequences: SequencesForm,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
) -> Iterator[tuple[Sequences, Position]]:
    """Sequences of a shard, some at a time, as they are stored; errors as `SequenceReader.read`."""
    few = replace(limits, batch_bytes=max(1, limits.batch_bytes // 8))
    if not sequences.columns:
        if form.holds(shard.url) != "texts":
            raise ShardError(
                shard.url, "holds token ids without an order; give --columns with one of lists"
            )
        chunks = read_chunks(shard, form, few, storage_options, start, content)
        return ((Sequences(symbols_of(texts, sequences.symbols)), after) for texts, after in chunks)
    tables = read_tables(shard, form, sequences.columns, few, storage_options, start, content)
    if len(sequences.columns) == 1:
        [name] = sequences.columns
        return (
            (Sequences(_lists(table[name], name, shard.url, few)), after) for table, after in tables
        )
    return _long(tables, sequences.columns, shard.url)


def symbols_of(texts: pa.Array | pa.ChunkedArray, symbols: Symbols) -> Values:
    """Symbols of texts: their characters, or runs of letters and digits, in lower case.

    Examples
    --------
    >>> symbols_of(pa.array(["Ab", "c"]), "characters").texts.to_pylist()
    ['a', 'b', 'c']
    >>> symbols_of(pa.array(["The sea, the SHIP"]), "words").texts.to_pylist()
    ['the', 'sea', 'the', 'ship']
    """
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    plain = pc.fill_null(whole.cast(pa.large_string()), "")
    folded = pc.utf8_lower(pc.utf8_normalize(plain, form="NFC"))
    if symbols == "words":
        parted = pc.utf8_trim_whitespace(pc.replace_substring_regex(folded, _LETTERS, " "))
        lists = pc.split_pattern(parted, " ")
        flat = lists.flatten()
        # a text without words is split into one of no letters
        held = np.asarray(pc.not_equal(flat, ""))
        ends = np.concatenate([[0], np.cumsum(held, dtype=np.int64)])
        offsets = np.asarray(lists.offsets, dtype=np.int64)
        return Values(ends[offsets - offsets[0]], flat.filter(pa.array(held)))
    points = np.frombuffer("".join(folded.to_pylist()).encode("utf-32-le"), dtype="<u4")
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.utf8_length(folded)))])
    kinds, places = np.unique(points, return_inverse=True)
    characters = pa.array([chr(point) for point in kinds], pa.large_string())
    return Values(offsets.astype(np.int64), pa.DictionaryArray.from_arrays(places, characters))


@dataclass
class _Pieces:
    """Cuts sequences into batches, and knows of the last one what its next chunk needs."""

    number: int  # of the next sequence, whose parity is its half
    before: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    seen: int = 0  # symbols of it so far

    def of(
        self, offsets: NDArray[np.int64], symbols: NDArray[np.int32], goes_on: bool, ends: bool
    ) -> Iterator[SymbolBatch]:
        sequence, place, last = 0, 0, len(offsets) - 2
        while sequence <= last:
            stop = int(np.searchsorted(offsets, offsets[sequence] + place + PIECE, side="right"))
            if place == 0 and stop - 1 > sequence:
                # as many whole sequences as there is room for
                end, upto = stop - 1, None
            else:
                end, upto = sequence + 1, place + PIECE
            yield self._batch(offsets, symbols, (sequence, end, place, upto), goes_on, ends)
            size = int(offsets[sequence + 1] - offsets[sequence])
            if upto is not None and upto < size:
                place, goes_on = upto, True
            else:
                sequence, place, goes_on = end, 0, False

    def _batch(
        self,
        offsets: NDArray[np.int64],
        symbols: NDArray[np.int32],
        cut: tuple[int, int, int, int | None],
        goes_on: bool,
        ends: bool,
    ) -> SymbolBatch:
        first, end, place, upto = cut
        begin, stop = int(offsets[first]) + place, int(offsets[end])
        whole = upto is None or offsets[first] + upto >= stop
        stop = stop if whole else int(offsets[first]) + int(upto or 0)
        context = self.before if goes_on else self.before[:0]
        own = np.concatenate([context, symbols[begin:stop]])
        inner = offsets[first + 1 : end] - begin + context.size
        cuts = np.concatenate([[0], inner, [own.size]]).astype(np.int64)
        chunks = end - first
        held, begins = np.zeros(chunks, np.int8), np.ones(chunks, np.bool_)
        held[0], begins[0] = context.size, not goes_on
        sizes = np.diff(cuts) - held
        sizes[0] += self.seen if goes_on else 0
        # a sequence that goes on is of the half in which it began
        numbers = self.number + np.cumsum(begins) - 1
        self.number = int(numbers[-1]) + 1
        finished = np.ones(chunks, np.bool_)
        finished[-1] = whole and (ends or end < len(offsets) - 1)
        self.seen, self.before = int(sizes[-1]), own[cuts[-2] :][-2:]
        short = int((sizes[finished] < 3).sum())
        return SymbolBatch(cuts, own, held, begins, numbers % 2 == 1, short)


def _lists(column: pa.ChunkedArray, name: str, url: str, limits: ReadLimits) -> Values:
    if not is_list(column.type):
        raise ShardError(
            url,
            f"column {name!r} is of type {column.type}, not of lists of symbols; leave out "
            "--columns where a text is a sequence, or give sequence,time,symbol",
        )
    values = values_of(column, name, url)
    longest = 8 * int(np.diff(values.offsets).max(initial=0))
    if longest > limits.document_bytes:
        raise ShardError(
            url,
            f"column {name!r} has a list of {longest} bytes, above {limits.document_bytes}; "
            "split it, or raise --max-document-bytes",
        )
    return values


def _long(
    tables: Iterator[tuple[pa.Table, Position]], columns: Sequence[str], url: str
) -> Iterator[tuple[Sequences, Position]]:
    """Runs of rows of one sequence, which may go on in the next table."""
    last: tuple[Any, Any] | None = None
    kind: pa.DataType | None = None
    for table, after in tables:
        names = values_of(table[columns[0]], columns[0], url).texts
        symbols = values_of(table[columns[2]], columns[2], url)
        times = table[columns[1]].combine_chunks()
        if pa.types.is_large_string(times.type) or pa.types.is_string(times.type):
            times = pc.if_else(pc.equal(times, ""), None, times)
        lacking = names.null_count or times.null_count
        if lacking or len(symbols.texts) != len(names):
            raise ShardError(
                url,
                f"a row has no {columns[0]!r} or no {columns[1]!r}, or {columns[2]!r} holds lists; "
                "give each row one of each",
            )
        kind = kind or _kind_of_times(times)
        try:
            times = times.cast(kind)
        except pa.ArrowInvalid as error:
            raise ShardError(
                url, f"column {columns[1]!r} holds numbers and texts; give times of one kind"
            ) from error
        keys = np.asarray(names.dictionary_encode().indices, dtype=np.int64)
        runs = np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1])
        ahead = np.ones(len(keys), np.bool_)
        ahead[1:] = pc.less(times[:-1], times[1:])
        ahead[runs] = True
        goes_on = last is not None and last[0] == names[0].as_py()
        if goes_on and last is not None:
            ahead[0] = last[1] < times[0].as_py()
        if len(np.unique(keys[runs])) < len(runs):
            # it came back after another one
            first = np.unique(keys[runs], return_index=True)[1]
            ahead[np.delete(runs, first)] = False
        if not ahead.all():
            row = int(np.flatnonzero(~ahead)[0])
            raise ShardError(
                url,
                f"the rows of sequence {names[row].as_py()!r} do not follow one another by "
                f"{columns[1]!r}; sort the rows by {columns[0]!r} and {columns[1]!r}",
            )
        last = names[-1].as_py(), times[-1].as_py()
        offsets = np.append(runs, len(names)).astype(np.int64)
        yield Sequences(Values(offsets, symbols.texts), goes_on), after


def _kind_of_times(times: pa.Array) -> pa.DataType:
    """As times are compared: texts that hold numbers as these."""
    if not (pa.types.is_large_string(times.type) or pa.types.is_string(times.type)):
        return times.type
    try:
        times.cast(pa.float64())
    except pa.ArrowInvalid:
        return times.type
    return pa.float64()

"""Read sequences of symbols from texts, lists or long tables, in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_half, row_keys
from streaming_moments.statistics.sequences.pieces import ABSENT, Pieces, edges_of, keys_of
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import Values, words_of
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.counting.symbols.named_sequences import (
    OpenPiece,
    Sequences,
    Spans,
    lists_of,
    long_tables,
)
from streaming_moments.storage.documents import read_chunks, read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

Symbols = Literal["characters", "words"]
SYMBOLS: tuple[Symbols, ...] = ("characters", "words")
# At most this many symbols are prepared at a time, because each needs a window of its neighbours,
# which takes 100 bytes.
PIECE = 1 << 18
_LETTERS = r"[^\p{L}\p{M}\p{N}]+"


@dataclass(frozen=True)
class SequencesForm:
    """In which columns, and in which form, shards have their sequences of symbols.

    symbols : unit of texts; both "characters" and "words" are folded to lower case
    columns : empty if each text is a sequence; one column of lists if each list is a sequence. A
        long table has three columns: sequence, time and symbol, and the rows of a sequence are
        sorted by time. A table of pieces has three, too: sequence, position of the first symbol,
        and list of symbols
    numbered : whether times are consecutive numbers, so that a missing number is a gap
    """

    symbols: Symbols = "characters"
    columns: tuple[str, ...] = ()
    numbered: bool = False

    def __post_init__(self) -> None:
        if len(self.columns) not in (0, 1, 3) or len(set(self.columns)) < len(self.columns):
            raise InvalidInput(
                f"sequences have {len(self.columns)} columns",
                "give {create.columns} one column of lists, or sequence,time,symbol if each row "
                "has one symbol, or sequence,from,symbols if each row has a list of symbols, or "
                "leave it out if texts are sequences",
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SequencesForm:
        """Decode a form that `to_json` encoded."""
        numbered = bool(content.get("numbered", False))
        return cls(content["symbols"], tuple(content["columns"]), numbered)

    def to_json(self) -> dict[str, Any]:
        """Convert the form to an object for JSON."""
        numbered = {"numbered": True} if self.numbered else {}
        return {"symbols": self.symbols, "columns": list(self.columns), **numbered}

    @property
    def named(self) -> bool:
        """Whether a column has names of the sequences."""
        return len(self.columns) == 3


@dataclass(frozen=True, eq=False)
class ReadSymbols(ReadBatch[SymbolBatch]):
    """Chunks of consecutive sequences of a shard.

    `spans` has the name of the sequence of each chunk, and where in the sequence the chunk begins
    and ends; None for sequences without names.
    """

    spans: Spans | None = None


@dataclass(frozen=True, eq=False)
class SequenceReader:
    """Reads the shards of a store of sequences.

    `words` is the alphabet. If the store `joins` pieces, batches also have the pieces of named
    sequences. Each sequence is in one of two halves of the data. If `by_content`, or if pieces are
    joined, the half of a named sequence depends on its name. The half of a sequence without a name
    depends on its symbols if `by_content`. Otherwise sequences alternate between the halves.
    """

    form: ShardFormat
    sequences: SequencesForm
    words: pa.LargeStringArray
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    joins: bool = False
    by_content: bool = True

    @classmethod
    def of(
        cls,
        form: ShardFormat,
        sequences: SequencesForm,
        alphabet: Vocabulary,
        limits: ReadLimits = DEFAULT_LIMITS,
        storage_options: Mapping[str, object] | None = None,
        joins: bool = False,
        by_content: bool = True,
    ) -> SequenceReader:
        """Make a reader that counts the symbols of an alphabet."""
        words = words_of(alphabet)
        return cls(form, sequences, words, limits, storage_options, joins, by_content)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadSymbols]:
        """Read chunks of the sequences of a shard.

        Raises ShardError if the shard cannot be read, or if the rows of a sequence are not sorted
        by time.
        """
        options = self.storage_options
        found = read_sequences(
            shard, self.form, self.sequences, self.limits, options, start, content, self.joins
        )
        return steadily(self._counted(found, shard.size), shard, options, content)

    def _counted(
        self, found: Iterable[tuple[Sequences, Position]], number: int
    ) -> Iterator[ReadSymbols]:
        pieces = _Pieces(number)
        # process a table only after the next table is read, because the next table may continue the
        # last sequence of this one
        waiting: tuple[Sequences, Position] | None = None
        for one in found:
            if waiting is not None:
                yield from self._read(pieces, *waiting, ends=not one[0].goes_on)
            waiting = one
        if waiting is not None:
            yield from self._read(pieces, *waiting, ends=True)

    def _read(
        self, pieces: _Pieces, sequences: Sequences, after: Position, ends: bool
    ) -> Iterator[ReadSymbols]:
        values, spans = sequences.values, sequences.spans
        symbols = values.places(self.words)
        found, odd = Pieces(), None
        if spans is not None and self.joins:
            found = pieces.named(values.offsets, symbols, spans, sequences.goes_on, ends)
        if spans is not None and (self.joins or self.by_content):
            odd = keys_of(spans.names)[:, 0] % 2 == 1
        elif self.by_content:
            # choose the half of a sequence by its symbols: all of them are here, because texts and
            # lists never continue in a next table
            odd = odd_half(row_keys(values.offsets, symbols))
        for batch, cut in pieces.of(values.offsets, symbols, sequences.goes_on, ends, odd):
            outside = int((batch.symbols[batch.own] < 0).sum())
            told = None if spans is None else spans.cut(*cut)
            yield ReadSymbols(replace(batch, pieces=found), outside, after, told)
            found = Pieces()  # the first batch of a table already has all its pieces


def read_sequences(
    shard: Shard,
    form: ShardFormat,
    sequences: SequencesForm,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
    joins: bool = True,
) -> Iterator[tuple[Sequences, Position]]:
    """Read the sequences of a shard in batches, without converting their symbols to numbers.

    Raises what `SequenceReader.read` raises.

    If the store `joins` pieces, a sequence of a long table may continue after rows of another
    sequence.
    """
    few = replace(limits, batch_bytes=max(1, limits.batch_bytes // 8))
    if not sequences.columns:
        if form.holds(shard.url) != "texts":
            raise ShardError(
                shard.url,
                "holds token ids without an order",
                "give {create.columns} a column of lists",
            )
        chunks = read_chunks(shard, form, few, storage_options, start, content)
        return ((Sequences(symbols_of(texts, sequences.symbols)), after) for texts, after in chunks)
    tables = read_tables(shard, form, sequences.columns, few, storage_options, start, content)
    if len(sequences.columns) == 1:
        [name] = sequences.columns
        return (
            (Sequences(lists_of(table[name], name, shard.url, few)), after)
            for table, after in tables
        )
    return long_tables(tables, sequences.columns, sequences.numbered, shard.url, few, joins)


def symbols_of(texts: pa.Array | pa.ChunkedArray, symbols: Symbols) -> Values:
    """Split texts into characters, or runs of letters and digits, in lower case.

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
        # drop the empty string that splitting gives for a text without words
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
    """Cuts sequences into batches, and keeps the last symbols of a chunk as context of the next."""

    # number of the next sequence; in stores of earlier formats, odd numbers belong to the odd half
    number: int
    before: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    seen: int = 0  # number of symbols read so far of the last sequence
    open: OpenPiece | None = None  # piece that the next table may continue

    def named(
        self,
        offsets: NDArray[np.int64],
        symbols: NDArray[np.int32],
        spans: Spans,
        goes_on: bool,
        ends: bool,
    ) -> Pieces:
        """Return the pieces of sequences whose last symbol is in this table.

        A piece that goes on in the next table stays open until then.
        """
        lengths, (first, last) = np.diff(offsets), edges_of(offsets, symbols)
        places = spans.places.copy()
        if goes_on and self.open is not None:
            places[0], lengths[0], first[0], last[0] = self.open.until(
                places[0], lengths[0], first[0], last[0]
            )
        ended = len(spans.names) - (not ends)
        if not ends:
            self.open = OpenPiece(places[-1], int(lengths[-1]), first[-1], last[-1])
        edges = np.hstack([first, np.where(lengths[:, None] > 2, last, ABSENT)])
        own = slice(0, ended)
        return Pieces.of(spans.names[own], places[own], spans.numbered, lengths[own], edges[own])

    def of(
        self,
        offsets: NDArray[np.int64],
        symbols: NDArray[np.int32],
        goes_on: bool,
        ends: bool,
        odd: NDArray[np.bool_] | None = None,
    ) -> Iterator[tuple[SymbolBatch, tuple[int, int, int]]]:
        """Yield each batch with three numbers.

        These are the number of the first sequence of the batch, the number of its last sequence
        plus 1, and the position at which the batch begins in the first sequence.
        """
        sequence, place, last = 0, 0, len(offsets) - 2
        while sequence <= last:
            stop = int(np.searchsorted(offsets, offsets[sequence] + place + PIECE, side="right"))
            if place == 0 and stop - 1 > sequence:
                # take as many whole sequences as fit into a batch
                end, upto = stop - 1, None
            else:
                end, upto = sequence + 1, place + PIECE
            batch = self._batch(offsets, symbols, (sequence, end, place, upto), goes_on, ends)
            halved = batch if odd is None else replace(batch, odd=odd[sequence:end])
            yield halved, (sequence, end, place)
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
        # a continued sequence has the number with which it began, and so stays in its half
        numbers = self.number + np.cumsum(begins) - 1
        self.number = int(numbers[-1]) + 1
        finished = np.ones(chunks, np.bool_)
        finished[-1] = whole and (ends or end < len(offsets) - 1)
        self.seen, self.before = int(sizes[-1]), own[cuts[-2] :][-2:]
        short = int((sizes[finished] < 3).sum())
        return SymbolBatch(cuts, own, held, begins, numbers % 2 == 1, short)

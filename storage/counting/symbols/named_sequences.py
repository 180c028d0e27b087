"""Read named sequences from tables that have a symbol, or a list of symbols, in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.statistics.sequences.pieces import ABSENT
from streaming_moments.storage.counting.columns import Values, values_of
from streaming_moments.storage.formats import Position, ReadLimits
from streaming_moments.storage.formats.parquet import is_list
from streaming_moments.storage.lazy_libraries import pa, pc

_FARTHEST = 1 << 62  # positions of symbols in a sequence are below this number
# Where a piece of a sequence begins and ends if its time is neither a number nor a date: its
# position in the sequence is unknown.
ANYWHERE = (-_FARTHEST, 0, _FARTHEST, 0)
_FRACTIONS = 2.0**52
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


@dataclass(frozen=True, eq=False)
class Spans:
    """Names of the sequences of m pieces, and the places where the pieces begin and end.

    places : (m, 4) int64, places of the first and last symbol, for `Pieces.of`
    numbered : whether places are positions in the sequence, not times
    steps : number of pairs of consecutive rows that are in the same sequence
    ones : number of these pairs in which the second place is the first one plus 1
    """

    names: list[str]
    places: NDArray[np.int64]
    numbered: bool
    steps: int = 0
    ones: int = 0

    def cut(self, first: int, end: int, place: int) -> Spans:
        """Select the sequences from `first` to `end`; drop `place` symbols of the first one."""
        places = self.places[first:end].copy()
        places[0, 0] += place
        return Spans(self.names[first:end], places, self.numbered)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Consecutive sequences of a shard.

    If `goes_on`, the first sequence continues the last one of the Sequences before. Sequences
    without names have no `spans` (None).
    """

    values: Values
    goes_on: bool = False
    spans: Spans | None = None


@dataclass(frozen=True, eq=False)
class OpenPiece:
    """A piece of a sequence that the next rows of the shard may continue.

    places : (4,) int64, where the piece begins, and where it ends so far
    length : number of its symbols so far
    first, last : (2,) int64, its first and last symbols, as `edges_of` returns them
    """

    places: NDArray[np.int64]
    length: int
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def until(
        self,
        places: NDArray[np.int64],
        length: int,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> tuple[list[int], int, list[int], list[int]]:
        """Join this piece and its continuation.

        Returns the places, the length, and the first and last symbols of the joined piece.
        """
        heads = [one for one in (*self.first, *first) if one != ABSENT]
        tails = [one for one in (*self.last, *last) if one != ABSENT]
        return (
            [*self.places[:2], *places[2:]],
            self.length + length,
            [*heads, ABSENT][:2],
            [ABSENT, *tails][-2:],
        )


def long_tables(
    tables: Iterator[tuple[pa.Table, Position]],
    columns: Sequence[str],
    numbered: bool,
    url: str,
    limits: ReadLimits,
    joins: bool = True,
) -> Iterator[tuple[Sequences, Position]]:
    """Yield pieces of sequences: the lists of a table, or its runs of rows of the same sequence.

    A run may continue in the next table.

    If times are `numbered`, a run ends where the next number is missing. If the store `joins`
    pieces, a sequence may continue after rows of another sequence.
    """
    last: tuple[Any, Any, NDArray[np.int64]] | None = None
    told: bool | None = None  # whether times are numbers; None if it is not known yet
    for table, after in tables:
        if is_list(table[columns[2]].type):
            yield from _listed(table, columns, url, limits, after)
            continue
        names = values_of(table[columns[0]], columns[0], url).texts
        symbols = values_of(table[columns[2]], columns[2], url)
        times = table[columns[1]].combine_chunks()
        if _is_text(times.type):
            times = pc.if_else(pc.equal(times, ""), None, times)
        if names.null_count or times.null_count:
            raise ShardError(
                url,
                f"a row has no {columns[0]!r} or no {columns[1]!r}; give both in each row",
            )
        try:
            times = _as_compared(times, told)
            later, places = pc.less(times[:-1], times[1:]), _places(times)
        except pa.ArrowInvalid as error:
            raise ShardError(
                url, f"column {columns[1]!r} holds both numbers and texts; give times of one kind"
            ) from error
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ShardError(
                url,
                f"column {columns[1]!r} is of type {times.type}, which is not a time; give "
                "numbers, dates or texts",
            ) from error
        told = not _is_text(times.type)
        keys = np.asarray(names.dictionary_encode().indices, dtype=np.int64)
        runs = np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1])
        ahead = np.ones(len(keys), np.bool_)
        # compare the parsed times, too: texts sort like their times only if all have the same UTC
        # offset
        ahead[1:] = np.asarray(later) & ~_before(places[1:], places[:-1])
        ahead[runs] = True
        goes_on = last is not None and last[0] == names[0].as_py()
        if goes_on and last is not None:
            ahead[0] = last[1] < times[0].as_py() and not _before(places[:1], last[2])[0]
        if not joins and len(np.unique(keys[runs])) < len(runs):
            # refuse a sequence that continues after rows of another sequence
            first = np.unique(keys[runs], return_index=True)[1]
            ahead[np.delete(runs, first)] = False
        if not ahead.all():
            row = int(np.flatnonzero(~ahead)[0])
            raise ShardError(
                url,
                f"the rows of sequence {names[row].as_py()!r} are not consecutive and sorted by "
                f"{columns[1]!r}; sort the rows by {columns[0]!r} and {columns[1]!r}, and write "
                "times that are texts with one UTC offset",
            )
        one_on = _one_on(places)
        one_on[runs] = False
        steps = len(keys) - len(runs)
        if numbered:
            runs = np.flatnonzero(~one_on)
            goes_on = (
                goes_on and last is not None and bool(_one_on(np.stack([last[2], places[0]]))[1])
            )
        last = names[-1].as_py(), times[-1].as_py(), places[-1]
        offsets = np.append(runs, len(names)).astype(np.int64)
        spans = Spans(
            names.take(pa.array(runs)).to_pylist(),
            np.hstack([places[runs, :2], places[offsets[1:] - 1, 2:]]),
            numbered,
            steps,
            int(one_on.sum()),
        )
        yield Sequences(Values(offsets, symbols.texts), goes_on, spans), after


def lists_of(column: pa.ChunkedArray, name: str, url: str, limits: ReadLimits) -> Values:
    """Read symbols from a column of lists; raise ShardError for a list above the limit."""
    if not is_list(column.type):
        raise ShardError(
            url,
            f"column {name!r} is of type {column.type}, not lists of symbols",
            "create the store without {create.columns} if a text is a sequence, or with "
            "sequence,time,symbol",
        )
    values = values_of(column, name, url)
    longest = 8 * int(np.diff(values.offsets).max(initial=0))
    if longest > limits.document_bytes:
        raise ShardError(
            url,
            f"column {name!r} has a list of {longest} bytes, above {limits.document_bytes}",
            "split it, or raise {option.max_document_bytes}",
        )
    return values


def _listed(
    table: pa.Table, columns: Sequence[str], url: str, limits: ReadLimits, after: Position
) -> Iterator[tuple[Sequences, Position]]:
    """Yield the pieces in a column of lists, with their positions in the sequences.

    Skips empty lists.
    """
    values = lists_of(table[columns[2]], columns[2], url, limits)
    held = np.flatnonzero(np.diff(values.offsets))
    rows = table.take(pa.array(held))
    names = values_of(rows[columns[0]], columns[0], url).texts
    numbers = rows[columns[1]].combine_chunks()
    if not pa.types.is_integer(numbers.type) or names.null_count or numbers.null_count:
        raise ShardError(
            url,
            f"a row has no {columns[0]!r}, or its {columns[1]!r} is not a whole number; give each "
            f"row the position that the first symbol of {columns[2]!r} has in its sequence",
        )
    if not held.size:
        return
    least, most = (bound.as_py() for bound in pc.min_max(numbers).values())
    if max(-least, most) >= _FARTHEST:
        far = most if most >= _FARTHEST else least
        raise ShardError(url, f"{columns[1]!r} is {far}; give numbers below 2^62, such as 0, 1, 2")
    places = np.zeros((held.size, 4), dtype=np.int64)
    places[:, 0] = numbers.cast(pa.int64())
    offsets = np.append(values.offsets[held], values.offsets[-1])
    places[:, 2] = places[:, 0] + np.diff(offsets) - 1
    spans = Spans(names.to_pylist(), places, True)
    yield Sequences(Values(offsets, values.texts), spans=spans), after


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))


def _as_compared(times: pa.Array, numbers: bool | None) -> pa.Array:
    """Convert times that are texts to numbers.

    `numbers` says whether the earlier times of the shard were numbers. If there were none (None),
    the times are converted only if all of them can be. If earlier times were texts (False), nothing
    is converted.
    """
    if numbers is False or not _is_text(times.type):
        return times
    for kind in (pa.int64(), pa.float64()):
        try:
            return times.cast(kind)
        except pa.ArrowInvalid:
            if numbers and kind == pa.float64():
                raise
    return times


def _places(times: pa.Array) -> NDArray[np.int64]:
    """Return (rows, 4) int64 places from the times of rows; each row is a piece with one symbol.

    A place has two int64: a whole number and a fraction. For times that are numbers, the fraction
    is in units of 2^-52. For dates and times of day, the whole number counts seconds, and the
    fraction nanoseconds.
    """
    try:
        whole, part = _parted(times)
    except pa.ArrowInvalid:
        return np.tile(np.array(ANYWHERE, dtype=np.int64), (len(times), 1))
    return np.stack([whole, part, whole, part], axis=1)


def _parted(times: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    kind = times.type
    if pa.types.is_integer(kind):
        whole = np.asarray(times.cast(pa.int64()), dtype=np.int64)
        return whole, np.zeros_like(whole)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = np.asarray(times.cast(pa.float64()))
        if not (np.abs(numbers) < 2.0**62).all():
            raise pa.ArrowInvalid("a number is too large for a position in a sequence")
        floor = np.floor(numbers)
        return floor.astype(np.int64), ((numbers - floor) * _FRACTIONS).astype(np.int64)
    if pa.types.is_date32(kind):
        days = np.asarray(times.cast(pa.int32()), dtype=np.int64)
        return days * _DAY, np.zeros_like(days)
    if pa.types.is_temporal(kind):
        per = _A_SECOND["ms" if pa.types.is_date64(kind) else kind.unit]
        small = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        counts = np.asarray(times.cast(small), dtype=np.int64)
        return counts // per, counts % per * (10**9 // per)
    # a text must be a date with a time; any other text raises an error
    try:
        return _parted(times.cast(pa.timestamp("ns")))
    except pa.ArrowInvalid:
        return _parted(times.cast(pa.timestamp("ns", "UTC")))


def _before(places: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the (rows,) mask of pieces in `places` that end before those in `others` begin.

    Compares the pieces row by row.
    """
    ends, begins = places[..., 2:], others[..., :2]
    same = ends[..., 0] == begins[..., 0]
    earlier = (ends[..., 0] < begins[..., 0]) | same & (ends[..., 1] < begins[..., 1])
    return np.asarray(earlier, dtype=np.bool_)


def _one_on(places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the (rows,) mask of rows whose place is 1 more than that of the previous row."""
    found = np.zeros(len(places), np.bool_)
    whole = (places[1:, 1] == 0) & (places[:-1, 1] == 0)
    found[1:] = whole & (places[1:, 0] - places[:-1, 0] == 1)
    return found

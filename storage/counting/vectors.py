"""Read rows of a shard as vectors of numbers, from one column of lists or from several columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.halves import halved
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.counting.views import sample_rows
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.formats.parquet import is_list
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

BadRows = Literal["skip", "refuse"]
BAD_ROWS: tuple[BadRows, ...] = get_args(BadRows)
_COLUMN = "vector"

PILOT_BYTES = 256 << 20
"""Size of the pilot in the memory of a coordinator, as float64."""


@dataclass(frozen=True)
class VectorsForm:
    """Which columns of a shard have the numbers of a row.

    columns : one column of lists of numbers, or several columns of numbers; for shards that are
        arrays, any one name
    bad : whether a row of another width, or with a missing, NaN or infinite number, is skipped and
        counted ("skip"), or makes its shard invalid ("refuse")
    """

    columns: tuple[str, ...] = (_COLUMN,)
    bad: BadRows = "skip"

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns) or "" in self.columns:
            raise InvalidInput(
                f"the columns of numbers are {', '.join(self.columns) or 'none'}; give one column "
                "of lists, or several different columns"
            )
        if self.bad not in BAD_ROWS:
            raise InvalidInput(f'bad rows are "{self.bad}"; choose {" or ".join(BAD_ROWS)}')

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> VectorsForm:
        """Decode a form that `to_json` encoded."""
        return cls(tuple(map(str, content["columns"])), content["bad"])

    def to_json(self) -> dict[str, Any]:
        """Convert the form to an object for JSON."""
        return {"columns": list(self.columns), "bad": self.bad}


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Rows of numbers, which may have different widths.

    widths : (rows,) int64, number of entries of each row; 0 for a missing row
    values : (sum of widths,), NaN for a missing number
    """

    widths: NDArray[np.int64]
    values: NDArray[Any]

    def of_width(self, width: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the (N, width) rows of finite numbers, and the mask of these among all rows."""
        fits = self.widths == width
        values = self.values
        if not fits.all():
            values = values[np.repeat(fits, self.widths)]
        table = values.reshape(-1, width)
        sound = np.isfinite(table).all(axis=1)
        if sound.all():
            return table, fits
        kept = fits.copy()
        kept[fits] = sound
        return table[sound], kept


@dataclass(frozen=True, eq=False)
class ReadVectors(ReadBatch[VectorBatch]):
    """Consecutive rows of a shard, without those that are not valid vectors.

    A valid row has the right number of numbers, all of them finite. `kept` is the mask of valid
    rows among all rows that were read, and `outside` the number of the other rows.
    """

    kept: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))


@dataclass(frozen=True, eq=False)
class VectorReader:
    """Reads the shards of a store of vectors with `dimension` numbers in each row.

    Each row is in one of two halves of the data. If `by_content`, its half depends on its numbers;
    otherwise consecutive rows alternate between the halves.
    """

    form: ShardFormat
    vectors: VectorsForm
    dimension: int
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    by_content: bool = True

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadVectors]:
        """Read batches of a shard from a position on.

        Raises ShardError for a row with another width, or with a missing or infinite number, if the
        store refuses such rows.
        """
        options = self.storage_options
        columns = self.vectors.columns
        tables = read_tables(shard, self.form, columns, self.limits, options, start, content, True)
        return steadily(self._batches(tables, shard, start), shard, options, content)

    def _batches(
        self, tables: Iterable[tuple[pa.Table, Position]], shard: Shard, start: Position
    ) -> Iterator[ReadVectors]:
        number = 0
        for table, after, odd in halved(tables, shard.size, self.by_content):
            rows = number_rows(table, self.vectors.columns, shard.url)
            values, kept = rows.of_width(self.dimension)
            bad = np.flatnonzero(~kept)
            if bad.size and self.vectors.bad == "refuse":
                self._refuse(rows, int(bad[0]), start.passed + number, shard.url)
            number += kept.size
            batch = VectorBatch(values, None if odd is None else odd[kept], bad.size)
            yield ReadVectors(batch, bad.size, after, kept)

    def _refuse(self, rows: NumberRows, place: int, passed: int, url: str) -> None:
        width = int(rows.widths[place])
        what = f"{width} numbers" if width != self.dimension else "numbers that are not finite"
        raise ShardError(
            url,
            f"row {passed + place + 1} has {what}, expected {self.dimension} finite numbers",
            "correct it, or create the store with {create.bad_rows:skip}",
        )


def number_rows(table: pa.Table, columns: Sequence[str], url: str) -> NumberRows:
    """Read rows of numbers from the columns of a table.

    Examples
    --------
    >>> table = pa.table({"v": [[1.0, 2.0], None, [None]]})
    >>> rows = number_rows(table, ["v"], "/shards/a.parquet")
    >>> rows.widths, rows.values
    (array([2, 0, 1]), array([ 1.,  2., nan]))
    """
    if len(columns) == 1 and is_list(table[columns[0]].type):
        whole = _whole(table[columns[0]])
        widths = np.asarray(pc.fill_null(pc.list_value_length(whole), 0), dtype=np.int64)
        return NumberRows(widths, _numbers(_read(whole.flatten()), columns[0], url))
    held = [_numbers(_read(_whole(table[name])), name, url) for name in columns]
    values = np.stack(held, axis=1)
    return NumberRows(np.full(len(values), len(columns)), values.ravel())


def sample_vectors(
    shard: Shard,
    form: ShardFormat,
    vectors: VectorsForm,
    quota: int,
    seed: int,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> NumberRows:
    """Draw rows of a shard, each equally likely, in one pass; raises what `sample_rows` raises."""
    table = sample_rows(
        shard, form, vectors.columns, quota, seed, limits, storage_options, even=True
    )
    return number_rows(table, vectors.columns, shard.url)


def pilot_of(
    samples: Sequence[NumberRows], most: int, seed: int, room: int | None = None
) -> tuple[NDArray[np.float64], int]:
    """Return those sampled rows that have the most common width, and the number of other rows.

    Raises InvalidInput if no row holds numbers.

    samples : samples of shards
    most : return at most this many rows, and at most `PILOT_BYTES`; if there are more, some are
        drawn
    seed : seed with which these are drawn
    room : largest size of the rows in bytes, if it is less than `PILOT_BYTES`
    """
    widths = np.concatenate([one.widths for one in samples])
    known, counts = np.unique(widths[widths > 0], return_counts=True)
    if not known.size:
        raise InvalidInput(
            f"none of the {widths.size} rows of the pilot is numeric",
            "check the columns in {create.columns}",
        )
    width = int(known[counts.argmax()])
    parts = [one.of_width(width)[0] for one in samples]
    drawn = sum(map(len, parts))
    kept = np.zeros(drawn, dtype=bool)
    held = PILOT_BYTES if room is None else min(PILOT_BYTES, room)
    most = max(2, min(most, held // (8 * width)))
    kept[np.random.default_rng(seed).permutation(drawn)[:most]] = True
    ends = np.cumsum([len(part) for part in parts])
    chosen = [part[own] for part, own in zip(parts, np.split(kept, ends[:-1]), strict=True)]
    return np.concatenate(chosen, dtype=np.float64), widths.size - drawn


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _numbers(array: pa.Array, name: str, url: str) -> NDArray[Any]:
    """Convert an array to numbers, with NaN for a missing number."""
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise ShardError(
            url,
            f"column {name!r} is of type {kind}",
            "give one column of lists of numbers, or several columns of numbers, to "
            "{create.columns}",
        )
    if array.null_count and not pa.types.is_floating(kind):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _read(array: pa.Array) -> pa.Array:
    """Parse an array of texts as numbers, with null for texts that are not numbers.

    An array of another type is returned unchanged.
    """
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    if not any(of(array.type) for of in kinds):
        return array
    try:
        return array.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array(map(_number, array.to_pylist()), pa.float64())


def _number(text: str | None) -> float | None:
    if text is None or "_" in text:  # `float` accepts "1_0", but in data files that is not a number
        return None
    try:
        return float(text)
    except ValueError:
        return None

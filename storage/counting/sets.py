"""Sets: rows of a shard as sets of features, of one column of lists or of several of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import values_of, words_of
from streaming_moments.storage.counting.halves import halved
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.shards import Shard, ShardFormat

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")

_COLUMN = "features"
_FALSE, _TRUE = ["", "0", "0.0", "false"], ["1", "1.0", "true"]
_SHOWN = 60


@dataclass(frozen=True)
class SetsForm:
    """Where the features of a row stand in a shard.

    columns : one column of features or lists of them, or several of 0 and 1, each a feature
    """

    columns: tuple[str, ...] = (_COLUMN,)

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns) or "" in self.columns:
            raise InvalidInput(
                f"the columns of features are {', '.join(self.columns) or 'none'}; give one of "
                "lists, or each of several of 0 and 1 once"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SetsForm:
        """The form that `to_json` described."""
        return cls(tuple(map(str, content["columns"])))

    def to_json(self) -> dict[str, Any]:
        """Description that JSON can hold."""
        return {"columns": list(self.columns)}

    @property
    def listed(self) -> bool:
        """Whether a row lists its features."""
        return len(self.columns) == 1


@dataclass(frozen=True, eq=False)
class SetReader:
    """Reads the shards of a store of sets.

    form : the format of the shards
    sets : where features stand
    features : that are counted
    limits, storage_options : as of any reader
    by_content : whether its features say which half a row is of; else rows are of both in turn
    """

    form: ShardFormat
    sets: SetsForm
    features: Vocabulary
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    by_content: bool = False

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[CountBatch]]:
        """Rows of a shard from a position on.

        ShardError if the shard cannot be read or changed, a column is missing or of another type.
        """
        options, columns = self.storage_options, self.sets.columns
        tables = read_tables(shard, self.form, columns, self.limits, options, start, content)
        return steadily(self._counted(tables, shard), shard, options, content)

    def _counted(
        self, tables: Iterable[tuple[pa.Table, Position]], shard: Shard
    ) -> Iterator[ReadBatch[CountBatch]]:
        for table, after, odd in halved(tables, shard.size, self.by_content):
            batch, outside = counted(table, self.sets, self.features, shard.url)
            yield ReadBatch(replace(batch, halves=odd), outside, after)


def counted(
    table: pa.Table, sets: SetsForm, features: Vocabulary, url: str
) -> tuple[CountBatch, int]:
    """Rows of a table, and how many of their features are not counted.

    Examples
    --------
    >>> table = pa.table({"features": [["a", "b", "a"], [], ["x"]]})
    >>> batch, outside = counted(table, SetsForm(), Vocabulary(("a", "b"), 2), "/a.parquet")
    >>> batch.to_csr().toarray().tolist(), outside
    ([[1, 1], [0, 0], [0, 0]], 1)
    """
    indptr, places, outside = _places(table, sets, features, url)
    batch = CountBatch.from_rows(indptr, places, None, features.n_words, features.fingerprint)
    return SetsFoundation.distinct(batch), outside


def _places(
    table: pa.Table, sets: SetsForm, features: Vocabulary, url: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Where each row begins, its features, -1 for those not counted, and how many are not."""
    if sets.listed:
        [name] = sets.columns
        values = values_of(table[name], name, url)
        places = values.places(words_of(features)).astype(np.int64)
        return values.offsets, places, int((places < 0).sum()) - values.texts.null_count
    has = np.stack([_truths(table[name], name, url) for name in sets.columns], axis=1)
    own = np.array([features.index.get(name, -1) for name in sets.columns])
    rows, columns = np.nonzero(has)
    indptr = np.searchsorted(rows, np.arange(table.num_rows + 1))
    return indptr, own[columns], int((own[columns] < 0).sum())


def _truths(column: pa.ChunkedArray, name: str, url: str) -> NDArray[np.bool_]:
    """(rows,) whether a column of 0 and 1, or of truths, also as texts, is true; a null is not."""
    if pa.types.is_nested(column.type):
        raise ShardError(
            url, f"column {name!r} is of type {column.type}; give one of lists alone, or of 0 and 1"
        )
    texts = pc.utf8_lower(pc.fill_null(column.cast(pa.string()), ""))
    places = np.asarray(pc.fill_null(pc.index_in(texts, value_set=pa.array(_FALSE + _TRUE)), -1))
    if (places < 0).any():
        raise ShardError(
            url,
            f"column {name!r} holds {texts[int(places.argmin())].as_py()[:_SHOWN]!r}, where 1 says "
            "that a row has the feature and 0 that it has not; give columns of 0 and 1, or one of "
            "lists",
        )
    return np.asarray(places >= len(_FALSE))

"""Read rows of a shard as sets of features, from a column of lists or from columns of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import values_of, words_of
from streaming_moments.storage.counting.halves import halved
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

_COLUMN = "features"
_FALSE, _TRUE = ["", "0", "0.0", "false"], ["1", "1.0", "true"]
_SHOWN = 60


@dataclass(frozen=True)
class SetsForm:
    """Which columns of a shard have the features of a row.

    columns : one column of features or of lists of features; or several columns of 0 and 1, one for
        each feature
    """

    columns: tuple[str, ...] = (_COLUMN,)

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns) or "" in self.columns:
            raise InvalidInput(
                f"the columns of features are {', '.join(self.columns) or 'none'}; give one column "
                "of lists, or several different columns of 0 and 1"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SetsForm:
        """Decode a form that `to_json` encoded."""
        return cls(tuple(map(str, content["columns"])))

    def to_json(self) -> dict[str, Any]:
        """Convert the form to an object for JSON."""
        return {"columns": list(self.columns)}

    @property
    def listed(self) -> bool:
        """Whether one column lists the features of a row."""
        return len(self.columns) == 1


@dataclass(frozen=True, eq=False)
class SetReader:
    """Reads the shards of a store whose records are sets of features.

    form : the format of the shards
    sets : the columns of features
    features : the counted features
    limits, storage_options : as for any reader
    by_content : whether the half of a row depends on its features; otherwise consecutive rows
        alternate between the halves
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
        """Read rows of a shard from a position on.

        Raises ShardError if the shard cannot be read or has changed, or if a column is missing or
        has another type.
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
    """Count the features in each row of a table; also return how many features are unknown.

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
    """Return the features of all rows in one array, and where each row starts in it.

    Returns the starts, the array, in which -1 is an unknown feature, and the number of unknown
    features.
    """
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
    """Return the (rows,) mask of values that mean true: 1, True, or a text such as "1"."""
    if pa.types.is_nested(column.type):
        raise ShardError(
            url,
            f"column {name!r} is of type {column.type}; give one "
            "column of lists, or several columns of 0 and 1",
        )
    texts = pc.utf8_lower(pc.fill_null(column.cast(pa.string()), ""))
    places = np.asarray(pc.fill_null(pc.index_in(texts, value_set=pa.array(_FALSE + _TRUE)), -1))
    if (places < 0).any():
        raise ShardError(
            url,
            f"column {name!r} holds {texts[int(places.argmin())].as_py()[:_SHOWN]!r}, but must be "
            "1 if a row has the feature and 0 if not; give columns of 0 and 1, or one column of "
            "lists",
        )
    return np.asarray(places >= len(_FALSE))

"""Records: documents of a collection as JSON Lines; equal documents give equal bytes."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import ShardError

_TABLES = (pa.Table, pa.RecordBatch)
TAKEN = "a text, an (id, text) pair, or a mapping with the text"
_TAKEN_AS_ROWS = "a mapping with all columns"
_TAKEN_AS_LISTS = "a list, an (id, list) pair, or a mapping with the list"


@dataclass(frozen=True)
class Fields:
    """Fields of a record to read; each is a column or a key.

    id : field that identifies the record within a call; in an (id, text) pair, the first item
    columns : columns that are counted instead of a text, by a store of another kind or of a table
    named : whether the line contains the id, under `id_key`. If `id` is None, the index of a frame
        or series of pandas is the id
    """

    text: str = "text"
    date: str | None = None
    id: str | None = None
    named: bool = False
    columns: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """Counted fields: the text or the columns."""
        return self.columns or (self.text,)

    @property
    def taken(self) -> str:
        """Describe what a record may be."""
        if not self.columns:
            return TAKEN
        return _TAKEN_AS_LISTS if len(self.columns) == 1 else _TAKEN_AS_ROWS

    @property
    def chosen_by(self) -> str:
        """Name the arguments that choose the columns."""
        if not self.columns:
            return "text_column or date_column of CountingOptions, or id_column"
        return (
            'KindOptions(KIND, "NAMES") (of a table, by CountingOptions(categories=...)), '
            "date_column of CountingOptions, or id_column"
        )

    @property
    def id_key(self) -> str:
        """Key of the id in a line; it differs from the keys of the text and the date."""
        return f"id of {self.text} {self.date}"

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        found = (*self.values, self.date, self.id)
        return list(dict.fromkeys(name for name in found if name is not None))


@dataclass(frozen=True)
class _Indexed:
    """A text of a series, with its label in the index; labels may repeat."""

    index: Any
    text: Any


@dataclass(frozen=True)
class Line:
    """One document as a line of JSON with its line end.

    id : 64 bits of the hash of its id
    called : its name of any type, as the caller gave it; None without one
    day : its date as in the line; None without one
    """

    content: bytes
    id: int | None = None
    called: Any = None
    day: str | None = None


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents of a partition as JSON Lines.

    `ids` is a (documents,) uint64 array of the hashes of their ids. It is empty if they have none.
    """

    content: bytes
    ids: NDArray[np.uint64]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Encoded:
        """Encode lines in their order."""
        held = list(lines)
        ids = [line.id for line in held if line.id is not None]
        return cls(b"".join(line.content for line in held), np.array(ids, dtype=np.uint64))

    @property
    def mark(self) -> str:
        """Fingerprint of the content in a ledger."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


def encoded(documents: Any, fields: Fields, name: str) -> Encoded:
    """Encode the documents of one partition; errors as in `lines_of`."""
    return Encoded.of(lines_of(documents, fields, name))


def lines_of(documents: Any, fields: Fields, name: str) -> Iterator[Line]:
    r"""Yield the lines of documents, one after the other.

    Documents are texts, (id, text) pairs or mappings, a frame of pandas, or a table or record batch
    of Arrow. `name` is the name of the partition or source. Raises ShardError for a bad record,
    text or date, a missing column, or no documents at all. The error gives the place of the
    document, counted from 1.

    Examples
    --------
    >>> [line.content for line in lines_of(["sea", (7, "law")], Fields(), "partition://a/0.jsonl")]
    [b'{"text": "sea"}\n', b'{"text": "law"}\n']
    """
    for place, record in enumerate(_records(documents, fields, name), 1):
        where = f"document {place}"
        alone = len(fields.values) == 1
        plain = isinstance(record, list | np.ndarray) if fields.columns else isinstance(record, str)
        if plain and alone:
            yield _line([record], None, None, fields, name, where)
        elif isinstance(record, _Indexed) and alone:
            yield _line([record.text], None, None, fields, name, where, record.index)
        elif isinstance(record, Mapping):
            _require_keys(record, fields, name, where)
            day = None if fields.date is None else record[fields.date]
            known = None if fields.id is None else record[fields.id]
            called = record.get(fields.id_key) if known is None else known
            values = [record[one] for one in fields.values]
            yield _line(values, day, known, fields, name, where, called)
        elif isinstance(record, tuple) and len(record) == 2 and alone:
            yield _line([record[1]], None, record[0], fields, name, where, record[0])
        elif is_missing(record):
            raise ShardError(name, f"{where} is missing; leave it out, in pandas by dropna()")
        else:
            raise ShardError(name, f"{where} is {_kind(record)}; give {fields.taken}")


def _records(documents: Any, fields: Fields, name: str) -> Iterator[Any]:
    if isinstance(documents, pa.RecordBatchReader):
        for batch in documents:
            yield from _records(batch, fields, name)
        return
    columns = _columns(documents)
    if columns is not None:
        missing = [column for column in fields.names if columns.count(column) != 1]
        if missing:
            number = columns.count(missing[0])
            what = f"{number} columns" if number else "no column"
            raise ShardError(
                name,
                f"has {what} {missing[0]!r}, it has {columns}; rename one, or choose another by "
                f"{fields.chosen_by}",
            )
        if isinstance(documents, _TABLES):
            table = documents.select(fields.names)
            batches = table.to_batches(1 << 14) if isinstance(table, pa.Table) else [table]
            for batch in batches:
                yield from batch.to_pylist()
            return
        kept = {column: documents[column] for column in fields.names}
        if fields.named:
            kept[fields.id_key] = documents.index
        for values in zip(*kept.values(), strict=True):
            yield dict(zip(kept, values, strict=True))
        return
    if isinstance(documents, (pa.Array, pa.ChunkedArray)):
        yield from (value.as_py() for value in documents)
        return
    if hasattr(documents, "tocsr") and hasattr(documents, "nnz"):
        raise ShardError(
            name,
            "the documents are a sparse matrix of counts, but a store counts texts; give the "
            "texts, or fit MomentTopics to the matrix",
        )
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise ShardError(
            name,
            f"the documents are {_kind(documents)}; give a list, in which each document is "
            f"{fields.taken}",
        )
    if fields.named and hasattr(documents, "index") and hasattr(documents, "items"):
        yield from (_Indexed(*pair) for pair in documents.items())
        return
    yield from documents


def _columns(documents: Any) -> list[str] | None:
    """Return the names of the columns of a table or frame; None for other types."""
    if isinstance(documents, _TABLES):
        return list(documents.column_names)
    if hasattr(documents, "columns") and hasattr(documents, "itertuples"):
        return list(map(str, documents.columns))
    return None


def _require_keys(record: Mapping[Any, Any], fields: Fields, name: str, where: str) -> None:
    for key in fields.names:
        if key not in record:
            raise ShardError(
                name,
                f"{where} has no {key!r}; it has {list(record)[:20]}: choose one by "
                f"{fields.chosen_by}",
            )


def _line(
    values: list[Any],
    day: Any,
    known: Any,
    fields: Fields,
    name: str,
    where: str,
    called: Any = None,
) -> Line:
    record: dict[str, Any] = {}
    for column, value in zip(fields.values, values, strict=True):
        if fields.columns:
            record[column] = _plain(value, column, name, where)
            continue
        if is_missing(value):
            raise ShardError(
                name, f"{where}: the text is missing; leave it out, in pandas by dropna()"
            )
        if not isinstance(value, str):
            what = "decode" if isinstance(value, (bytes, bytearray)) else "correct or delete"
            raise ShardError(name, f"{where}: the text is {_kind(value)}, not a str; {what} it")
        record[column] = str(value)
    if (
        fields.date is not None and day is not None and day == day
    ):  # pandas may have NaN for a missing date
        if not isinstance(day, (str, datetime.date)):
            raise ShardError(name, f"{where}: the date is {_kind(day)}; give a date, or an ISO str")
        record[fields.date] = day if isinstance(day, str) else day.isoformat()
    if fields.named:
        record[fields.id_key] = None if called is None else str(called)
    try:
        content = json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ShardError(
            name,
            (
                f"{where} contains half of a surrogate pair, which is not a character; "
                "correct or delete it"
            ),
        ) from error
    told = None if fields.date is None else record.get(fields.date)
    return Line(content + b"\n", None if known is None else _hash_of(known), called, told)


def _plain(value: Any, column: str, name: str, where: str) -> Any:
    """Return the value of a column for JSON; None if it is missing."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        value = _time(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "M" and value.ndim:
        value = list(value)
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one, column, name, where) for one in value]
    if is_missing(value):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN or infinity
    if isinstance(value, float) and value.is_integer():
        return int(value)  # pandas stores whole numbers as floats if some are missing
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise ShardError(
        name,
        f"{where}: {column!r} is {_kind(value)}; give texts, whole numbers, booleans, dates, or "
        "lists of these",
    )


def is_missing(value: Any) -> bool:
    """Whether a value is missing; this recognises pandas.NA without importing pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _time(value: np.datetime64) -> Any:
    """Return a date or time of Python; return its text if it has more digits than Python keeps."""
    for told in (value, value.astype("datetime64[us]")):
        if told == value and isinstance(found := told.tolist(), datetime.date):
            return found
    return str(value)


def _hash_of(known: Any) -> int:
    # hash the type, too, because 1 and "1" are different ids
    digest = hashlib.blake2b(f"{type(known).__name__} {known}".encode(errors="replace"))
    return int.from_bytes(digest.digest()[:8], "little")


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"

"""Records: checks documents as the reader of the store would, and writes them as lines of JSON."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.nearest import guess
from streaming_moments.printing.remedies import Spell
from streaming_moments.storage.formats.columns.dates import day_of
from streaming_moments.storage.inbox.batches import Piece, Submission
from streaming_moments.storage.inbox.fields import RecordField, said, text_field

_LONGEST_ID = 1000  # the id of a document has at most this many characters
# the documents of a request have at most this many dates, as each day makes a shard and a commit
_MOST_DAYS = 31
# `RecordShape.judge` checks only lines of more bytes, or documents of more tokens, than this
LIGHT = 1 << 15
_SHOWN = 60
_ID, _DATE = "id", "date"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class Unreadable:
    """Placeholder for a document that cannot be read, with the reason."""

    reason: str


class RecordRefused(InvalidInput):
    """A document is invalid.

    field : name of the field; empty for the document itself
    reason : the problem, and the accepted values
    id : the id of the document
    """

    def __init__(self, place: int, field: str, reason: str, id: str | None = None) -> None:
        super().__init__(place, field, reason)
        self.place, self.field, self.reason, self.id = place, field, reason, id

    def said(self, spell: Spell) -> str:
        where = f"document {self.place}" + (f", field {self.field!r}" if self.field else "")
        return f"{where}: {self.reason}"


@dataclass(frozen=True)
class RecordShape:
    r"""Fields of a document, as it is sent and as the reader of a store reads it.

    A document is sent as an object with the `counted` fields, and optionally `id` and `date`.

    counted : the text, or the fields that a store of another kind counts
    date_column : name under which the reader finds the date; None if each shard holds a single day
    line_bytes : largest size of a line
    days : largest age of a document's date in days. The day after arrival is also accepted. None
        accepts any date. Each day is counted separately.
    judge : returns the reason why a line that is large or has many tokens cannot be counted; None
        if it can
    light : lines of at most this many bytes and tokens are not checked by `judge`

    Examples
    --------
    >>> shape = RecordShape((text_field("body"),))
    >>> shape.line({"text": "the sea", "id": 7}, 0, date(2026, 11, 23))
    (datetime.date(2026, 11, 23), b'{"body":"the sea","id":"7"}\n')
    >>> shape.line({"txt": "the sea"}, 3, date(2026, 11, 23))
    Traceback (most recent call last):
        ...
    streaming_moments.storage.inbox.records.RecordRefused: document 3, field 'txt': ...
    """

    counted: tuple[RecordField, ...] = (text_field(),)
    date_column: str | None = None
    line_bytes: int = 8 << 20
    days: int | None = None
    judge: Callable[[bytes], str | None] | None = field(default=None, repr=False, compare=False)
    light: int = field(default=LIGHT, repr=False, compare=False)

    def __post_init__(self) -> None:
        read = [
            *(one.column for one in self.counted),
            *((self.date_column,) if self.date_column else ()),
        ]
        if len(set(read)) < len(read) or _ID in read:
            raise InvalidInput(
                f"documents are read from the fields {read}; the names must differ, and none may "
                f"be {_ID!r}, which identifies the document"
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields of a sent document."""
        return (*(one.name for one in self.counted), _ID, _DATE)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the required fields."""
        return tuple(one.name for one in self.counted if one.counts_of is None)

    @property
    def _counts(self) -> tuple[str, ...]:
        """Names of the columns of counts."""
        return tuple(one.column for one in self.counted if one.counts_of is not None)

    def line(self, record: object, place: int, today: date) -> tuple[date, bytes]:
        """Return the day of a document and its line; without a date the day is `today`.

        Raises RecordRefused if the document is invalid. The error names the field and the accepted
        values.

        record : the document as decoded JSON
        place : place of the document in the request
        today : day of arrival
        """
        if isinstance(record, Unreadable):
            raise RecordRefused(place, "", record.reason)
        if not isinstance(record, Mapping):
            raise RecordRefused(
                place, "", f"{said(record)}, expected an object with {self.required[0]}"
            )
        self._require_fields(record, place)
        kept = {one.column: self._written(one, record, place) for one in self.counted}
        if record.get(_ID) is not None:
            kept[_ID] = _identity(record[_ID], place)
        given = record.get(_DATE) if _DATE not in self.required else None
        day = today if given is None else self._dated(_day(given, place), place, today)
        if self.date_column is not None:
            kept[self.date_column] = day.isoformat()
        try:
            line = to_json(kept, inf_nan_mode="strings") + b"\n"
        except (PydanticSerializationError, UnicodeEncodeError, ValueError) as error:
            raise RecordRefused(
                place,
                self.required[0],
                "it holds half of a surrogate pair, which is not a character; remove it",
            ) from error
        if len(line) > self.line_bytes:
            raise RecordRefused(
                place, self.required[0], f"the document exceeds {self.line_bytes:,} bytes; split it"
            )
        tokens = (sum(one) for one in map(kept.get, self._counts) if isinstance(one, list))
        large = self.judge is not None and max(len(line), *tokens, 0) > self.light
        why = self.judge(line) if self.judge is not None and large else None
        if why is not None:
            raise RecordRefused(place, self.required[0], why)
        return day, line

    def submission(
        self,
        records: Iterable[object],
        receipt: str,
        keyed: bool,
        today: date,
        skip_bad: bool = False,
    ) -> tuple[Submission, tuple[RecordRefused, ...]]:
        """Return the submission of a request, and the documents that were rejected.

        Raises RecordRefused as `line` does. Raises InvalidInput if there are no valid documents, or
        their dates span more than 31 days.

        records : documents as decoded JSON
        keyed : whether the request has an idempotency key
        today : day of arrival
        skip_bad : whether to skip invalid documents; otherwise the first raises its error
        """
        days: dict[date, list[bytes]] = {}
        digest, bad = hashlib.sha256(), list[RecordRefused]()
        for place, record in enumerate(records):
            try:
                day, line = self.line(record, place, today)
            except RecordRefused as refused:
                if not skip_bad:
                    raise
                name = _sent_under(record)
                bad.append(RecordRefused(refused.place, refused.field, refused.reason, name))
                continue
            days.setdefault(day, []).append(line)
            # leave the day of arrival out of the digest, as a request may be repeated a day later
            given = record.get(_DATE) if isinstance(record, Mapping) else None
            digest.update(b"%d %d\n" % (place, day.toordinal() if given is not None else 0))
            digest.update(line if given is not None or self.date_column is None else _undated(line))
        if not days:
            told = f"; {bad[0]}" if bad else ""
            raise InvalidInput(f"there are no valid documents{told}; send at least one")
        if len(days) > _MOST_DAYS:
            raise InvalidInput(
                f"the documents have {len(days)} dates, and each day is counted separately; send "
                f"at most {_MOST_DAYS} days at once, or count old documents with "
                "`streaming-moments update`"
            )
        pieces = tuple(
            Piece(day, len(lines), sum(map(len, lines))) for day, lines in sorted(days.items())
        )
        content = b"".join(b"".join(lines) for _, lines in sorted(days.items()))
        return Submission(receipt, digest.hexdigest(), keyed, pieces, content), tuple(bad)

    def _dated(self, day: date, place: int, today: date) -> date:
        if self.days is None:
            return day
        if (day - today).days > 1:
            raise RecordRefused(
                place,
                _DATE,
                f"it is {day}, in the future: today is {today} (UTC), and a document may be dated "
                "at most one day later; correct it",
            )
        if (today - day).days > self.days:
            raise RecordRefused(
                place,
                _DATE,
                f"it is {day}, expected a day from {self.days} days before {today} to the day "
                "after it; count older documents with `streaming-moments update`",
            )
        return day

    def _written(self, one: RecordField, record: Mapping[str, Any], place: int) -> object:
        if one.counts_of is not None and record.get(one.name) is None:
            return [1] * len(record[one.counts_of])
        try:
            found = one.written(record[one.name])
            if one.counts_of is not None and len(record[one.counts_of]) != len(record[one.name]):
                entries, expected = len(record[one.name]), len(record[one.counts_of])
                raise InvalidInput(
                    f"it has {entries} entries, expected {expected}, as many as {one.counts_of!r}"
                )
        except InvalidInput as refused:
            raise RecordRefused(place, one.name, str(refused)) from refused
        return found

    def _require_fields(self, record: Mapping[str, object], place: int) -> None:
        for name in record:
            if name not in self.fields:
                told = guess(str(name), self.fields, f"the fields are {', '.join(self.fields)}")
                raise RecordRefused(place, str(name)[:_SHOWN], f"there is no such field; {told}")
        for name in self.required:
            if name not in record:
                raise RecordRefused(place, name, "it is missing")


def _sent_under(record: object) -> str | None:
    """Return the id of a document, even of an invalid one; None if it has no id."""
    found = record.get(_ID) if isinstance(record, Mapping) else None
    return str(found)[:_LONGEST_ID] if isinstance(found, str | int) else None


def _undated(line: bytes) -> bytes:
    """Return a line without its last field, which is the day of arrival."""
    return line[: line.rindex(b",")]


def _identity(value: object, place: int) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordRefused(place, _ID, f"{said(value)}, expected a string or a whole number")
    if not 0 < len(str(value)) <= _LONGEST_ID:
        raise RecordRefused(place, _ID, f"it must have 1 to {_LONGEST_ID} characters")
    return str(value)


def _day(value: object, place: int) -> date:
    try:
        if isinstance(value, str):
            return day_of(value)
    except (ValueError, OverflowError):
        if isinstance(value, str) and _DAY.match(value):
            raise RecordRefused(
                place, _DATE, f"the calendar has no {value[:_SHOWN]!r}; correct it"
            ) from None
    raise RecordRefused(
        place, _DATE, f"{said(value)}, expected a text that begins with a date, such as 2026-11-23"
    )

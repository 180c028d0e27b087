"""Recognise the kind of data by the columns of the first shards, if no option names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.counting_options import CountingOptions
from streaming_moments.pipelines.jobs.kinds.base import Sight
from streaming_moments.pipelines.jobs.kinds.first_rows import first_rows
from streaming_moments.pipelines.jobs.kinds.header_line import like_a_record
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.shards import Shard

_LOOKED_AT = 3  # examine the columns of at most this many shards
_SHOWN = 60  # a message shows at most this many characters of a value
_WORDS = 4.0  # strings with at least this many words on average are texts, not categories or names
_CALLED = {KindOptions().kind: "documents"}
# If one of these options is given, the shards hold documents.
_OF_DOCUMENTS = frozenset({"text_column", "categories"})


@dataclass(frozen=True)
class Recognised:
    """Description of the content of shards, and the options of `create` that select it."""

    what: str
    options: str
    shape: KindOptions
    counting: CountingOptions
    warning: str = ""


def recognised(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    given: Set[str],
    storage_options: Mapping[str, object] | None = None,
) -> Recognised:
    """Return how to read shards, by the options in `given` and the columns of the first shards.

    Shards that fit no kind, or cannot be read, are read as the kind of `shape`. Raises InvalidInput
    if the shards fit several kinds; the message lists the options that decide.
    """
    kinds = _kinds_with(given) or {shape.kind}
    if kinds == {shape.kind} or not shards:
        what = "rows of a table" if counting.categories else "documents"
        return _by((shape.kind, Sight(what)), shape, counting)
    # If the columns of a shard fit no kind, use the kind of `shape` if the given options allow it,
    # or else all kinds that they allow.
    usual = [(kind, Sight(_CALLED.get(kind, kind))) for kind in sorted(kinds)]
    usual = [way for way in usual if way[0] == shape.kind] or usual
    found: dict[str, tuple[str, Sight]] = {}
    warning = ""
    for shard in shards[:_LOOKED_AT]:
        sights, lacking = _of_shard(shard, counting, kinds, storage_options)
        warning = warning or lacking
        for kind, sight in sights or usual:
            way = kind, Sight(sight.what) if shape.columns else sight
            found.setdefault(_options(way), way)
    if len(kinds) == 1 or len(found) == 1:
        return replace(_by(next(iter(found.values())), shape, counting), warning=warning)
    ways = (f"`{options}` for {sight.what}" for options, (_, sight) in found.items())
    several = f"{shards[0].url} can be read in several ways: give {', or '.join(ways)}"
    raise InvalidInput(f"{several}. {warning}" if warning else several)


def _kinds_with(given: Set[str]) -> set[str]:
    """Return the kinds that accept every given option, apart from options that all kinds accept."""
    asked = given & frozenset[str]().union(*(one.takes for one in KIND_JOBS.values()))
    kinds = {kind for kind, one in KIND_JOBS.items() if asked <= one.takes}
    return kinds & {KindOptions().kind} if given & _OF_DOCUMENTS else kinds


def _options(way: tuple[str, Sight]) -> str:
    kind, sight = way
    return " ".join(filter(None, (f"--kind {kind}", sight.options)))


def _by(way: tuple[str, Sight], shape: KindOptions, counting: CountingOptions) -> Recognised:
    kind, sight = way
    return Recognised(
        sight.what,
        _options(way),
        replace(shape, kind=kind, columns=shape.columns or sight.columns),
        replace(counting, **sight.changes),
    )


def _of_shard(
    shard: Shard,
    counting: CountingOptions,
    kinds: Set[str],
    storage_options: Mapping[str, object] | None,
) -> tuple[list[tuple[str, Sight]], str]:
    """Return each kind and way to read a shard, and a warning if it seems to lack a header line.

    Usual names of columns decide before their types.
    """
    warning = ""
    if FORMATS[counting.form.kind_of(shard.url)].holds(counting.form) == "vectors":
        columns = {"": "numbers"}
    else:
        table = first_rows(shard, counting.form, storage_options)
        if table is None:
            return [], ""
        named = counting.text_column in table.column_names
        if counting.form.kind_of(shard.url) in ("csv", "tsv") and not named:
            warning = _without_header(shard, table)
        columns = {name: _what(table.column(name)) for name in _once(table.column_names)}
    found = [
        (kind, sight)
        for kind, jobs in KIND_JOBS.items()
        if kind in kinds
        for sight in jobs.sights(columns, counting.text_column)
    ]
    usual = [way for way in found if way[1].usual]
    # prefer documents if there is a column of texts with the usual name
    own = next(([way] for way in usual if way[0] == KindOptions().kind), usual or found)
    return own, warning


def _without_header(shard: Shard, table: pa.Table) -> str:
    """Warn that the first line of a file seems to be a record; "" if it names columns."""
    value = like_a_record(table)
    if value is None:
        return ""
    value = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    alone = len(table.column_names) == 1
    lines = "each line" if alone else "each line as a whole"
    return (
        f"{shard.url} seems to have no header line: its first line would name the columns, but "
        f"{value!r} looks like a value. Add a line of names"
        f"{', such as text,' if alone else ''} before it, or read {lines} as a text with "
        "--format text"
    )


def _once(names: Sequence[str]) -> list[str]:
    return [name for name in names if names.count(name) == 1]


def _what(values: pa.ChunkedArray) -> str:
    """Classify the values of a column: text, word, whole, bit, number, or lists of these."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        words = pc.mean(pc.count_substring_regex(values.cast(kind), r"\S+")).as_py()
        return "text" if words is not None and words >= _WORDS else "word"
    if pa.types.is_boolean(kind):
        return "bit"
    if pa.types.is_integer(kind):
        bounds = pc.min_max(values).as_py()
        return "bit" if bounds["min"] in (0, 1) and bounds["max"] == 1 else "whole"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        if pa.types.is_string(inner) or pa.types.is_large_string(inner):
            return "words"
        return "ids" if pa.types.is_integer(inner) else "numbers"
    return "other"

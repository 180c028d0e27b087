"""Partitions: shards that consist of Python values instead of files, with a name and a hash.

The process of the caller cuts an iterable into partitions, a few (a window) at a time. The
partitions of a Dask collection stay on the workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future, KilledWorker
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import completed, task_key
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.interface.records import (
    Encoded,
    Fields,
    Line,
    encoded,
    lines_of,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import DateRange, Period
from streaming_moments.storage.files.filesystems import one_line
from streaming_moments.storage.formats.columns.dates import day_of
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.shards import PARTITIONS, Shard

# An iterable is cut into partitions of about this many bytes, because Dask warns of larger
# messages.
_CUT_BYTES = 4 << 20
_WINDOW_BYTES = 128 << 20  # about so much of an iterable is in memory at a time
_KEPT_SHARE = 4  # encoded content may use the memory of the workers divided by this number
_PERIOD = re.compile(r"/(\d{4}-\d{2}-\d{2})-\d{5}\.jsonl$")
# Bytes assumed for a partition of unknown size. A task then gets only one such partition.
_UNKNOWN_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class Held:
    """Partition of an iterable, with its content in the process of the caller.

    shard : shard under which a ledger records the partition
    called : name of each document, if the caller gave names
    """

    shard: Shard
    documents: Encoded
    called: tuple[Any, ...] = ()

    @property
    def mark(self) -> str:
        """Fingerprint of the content."""
        return self.documents.mark

    def content(self, client: Client) -> Future[Any]:
        """Return a future of the content, which Dask computes again if a worker loses it."""
        return client.submit(
            _itself, self.documents, pure=False, key=task_key("holding partitions")
        )


@dataclass(frozen=True, eq=False)
class Lazy:
    """Partition of a Dask collection, which is computed on a worker.

    shard : shard under which a ledger records the partition; an unknown size counts as 32 MiB
    fields : fields of the documents to read
    mark : fingerprint of the content, once it is known
    kept : content, if it stays in the memory of a worker until a task reads it
    """

    shard: Shard
    part: Any
    fields: Fields
    mark: str = ""
    kept: Future[Any] | None = field(default=None, repr=False)

    def content(self, client: Client) -> Future[Any]:
        """Return the content, from the memory of a worker or computed again."""
        if self.kept is not None and self.kept.status != "cancelled":
            return self.kept
        part = client.compute(self.part) if isinstance(self.part, Delayed) else self.part
        return client.submit(
            _encoded,
            part,
            self.fields,
            self.shard.url,
            pure=False,
            key=task_key("reading partitions"),
        )


def is_collection(documents: object) -> bool:
    """Whether documents are in a Dask collection, or a list of delayed objects or futures."""
    if is_dask_collection(documents) or isinstance(documents, Future):
        return True
    listed = isinstance(documents, (list, tuple)) and bool(documents)
    return listed and all(isinstance(one, (Delayed, Future)) for one in documents)  # type: ignore[attr-defined]


def collected(documents: Any, source: str, fields: Fields) -> list[Lazy]:
    """Return the partitions of a Dask collection, in order, without computing them.

    Raises InvalidInput for a collection without partitions, such as an array.
    """
    parts: Any = [documents] if isinstance(documents, (Delayed, Future)) else documents
    if is_dask_collection(parts):
        if not hasattr(parts, "to_delayed") or hasattr(parts, "chunks"):
            raise InvalidInput(
                f"a {type(documents).__name__} has no partitions of documents; give a dask.bag, a "
                "dask.dataframe or a list of delayed"
            )
        parts = parts.to_delayed()
    return [
        Lazy(Shard(_url(source, number), _UNKNOWN_BYTES), part, fields)
        for number, part in enumerate(parts)
    ]


def windows(
    documents: Any, source: str, fields: Fields, by: Period | None = None
) -> Iterator[list[Held]]:
    """Yield partitions of an iterable, 128 MiB at a time; equal documents have equal cuts.

    With `by`, a partition has documents of one day, week or month. Its URL contains the first day
    of this period.

    Raises InvalidInput for anything but an iterable of documents. Raises ShardError as `lines_of`
    does, or for an id that occurs twice.
    """
    if callable(documents):
        try:
            documents = documents()
        except TypeError as error:
            raise InvalidInput(
                f"the function given as documents failed ({one_line(error)}); give a function that "
                "has no arguments and returns documents"
            ) from error
    window: list[Held] = []
    nbytes = 0
    known: set[int] = set()
    named = lines_of(documents, fields, source_url(source))
    cuts = enumerate(_cut(named)) if by is None else _cut_by(named, by, source_url(source))
    for place, lines in cuts:
        url = _url(source, place)
        own = Encoded.of(lines)
        _require_single(own.ids.tolist(), known, source_url(source))
        called = tuple(line.called for line in lines) if fields.named else ()
        window.append(Held(Shard(url, len(own.content)), own, called))
        nbytes += len(own.content)
        if nbytes >= _WINDOW_BYTES:
            yield window
            window, nbytes = [], 0
    if window:
        yield window


def marked(parts: Sequence[Lazy], run: Run, keep_going: bool = False) -> list[Lazy]:
    """Return the partitions that are not empty, each with the mark (hash) of its content.

    A worker encodes each partition once. Encoded contents stay on the workers as long as they fit
    into a quarter of the memory of the workers. Other partitions are encoded again when they are
    counted. With `keep_going`, the error of a bad partition is raised only when the partition is
    read. Raises InvalidInput for an id that occurs twice.
    """
    cluster = run.cluster
    room = cluster.memory * cluster.workers // _KEPT_SHARE
    found: dict[int, Lazy] = {}
    known: list[NDArray[np.uint64]] = []
    contents: dict[int, Future[Any]] = {}

    def calls() -> Iterator[tuple[Any, ...]]:
        for place, part in enumerate(parts):
            contents[place] = part.content(cluster.client)
            yield (contents[place],)

    in_flight = cluster.workers * cluster.threads
    finished = completed(cluster, _described, calls(), in_flight, "marking partitions")
    for done, (place, told) in enumerate(finished, 1):
        part, content = parts[place], contents.pop(place)
        if isinstance(told, KilledWorker):
            raise WorkersLost(
                f"the workers died repeatedly while they computed {part.shard.url}, a partition of "
                "the collection.",
                "Compute it alone to see why, or give the workers more memory; all commits so far "
                "are stored",
            ) from told
        if isinstance(told, BaseException):
            raise told
        run.progress.advance("marking partitions", done, len(parts))
        if told.error is not None:
            if not keep_going:
                raise told.error
            found[place] = part
            continue
        if not told.size:
            continue
        known.append(told.ids)
        keep = content if told.size <= room else None
        room -= told.size if keep is not None else 0
        shard = replace(part.shard, size=told.size)
        found[place] = replace(part, shard=shard, mark=told.mark, kept=keep)
    every = np.concatenate([np.empty(0, dtype=np.uint64), *known])
    if repeated := every.size - np.unique(every).size:
        raise _repeated(repeated, parts[0].shard.url.rpartition("/")[0])
    return [found[place] for place in sorted(found)]


@dataclass(frozen=True, eq=False)
class _Described:
    """Description of a partition: a task returns it, while the content stays on the worker."""

    size: int = 0
    mark: str = ""
    ids: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    error: ShardError | None = None


def _itself(documents: Encoded) -> Encoded:
    return documents


def _encoded(documents: Any, fields: Fields, url: str) -> Encoded | ShardError:
    # return the error, because the caller decides whether to raise it
    try:
        return encoded(documents, fields, url)
    except ShardError as error:
        return error


def _described(content: Encoded | ShardError) -> _Described:
    if isinstance(content, ShardError):
        return _Described(error=content)
    return _Described(len(content.content), content.mark, content.ids)


def _cut(lines: Iterable[Line]) -> Iterator[list[Line]]:
    held, size = list[Line](), 0
    for line in lines:
        held.append(line)
        size += len(line.content)
        if size >= _CUT_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _cut_by(lines: Iterable[Line], by: Period, url: str) -> Iterator[tuple[str, list[Line]]]:
    """Cut lines into partitions of one period each; yield the name and the lines of each.

    Large partitions are yielded early, so that memory never holds all lines.
    """
    held: dict[date, list[Line]] = {}
    sizes: dict[date, int] = {}
    numbers: dict[date, int] = {}
    total = 0

    def taken(first: date) -> tuple[str, list[Line]]:
        number = numbers.get(first, 0)
        numbers[first] = number + 1
        del sizes[first]
        return f"{first}-{number:05d}", held.pop(first)

    for line in lines:
        first = _first_day(line, by, url)
        held.setdefault(first, []).append(line)
        sizes[first] = sizes.get(first, 0) + len(line.content)
        total += len(line.content)
        if sizes[first] >= _CUT_BYTES or total >= _WINDOW_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            total -= sizes[largest]
            yield taken(largest)
    for first in sorted(held):
        yield taken(first)


def _first_day(line: Line, by: Period, url: str) -> date:
    if line.day is None:
        raise InvalidInput(
            f"a document of {url} has no date, so it belongs to no {by}; give it a date, or leave "
            "it out"
        )
    try:
        day = day_of(line.day)
    except ValueError as error:
        raise ShardError(
            url, f"{line.day!r} does not begin with a date; give a date such as 2026-11-21"
        ) from error
    return DateRange(day, day).period(by).first


def _require_single(ids: Sequence[int], known: set[int], url: str) -> None:
    before = len(known)
    known.update(ids)
    if repeated := before + len(ids) - len(known):
        raise _repeated(repeated, url)


def _repeated(number: int, url: str) -> InvalidInput:
    return InvalidInput(
        f"{of_number(number, 'document')} of {url} {'has' if number == 1 else 'have'} the id of "
        "another document; give each document an id of its own, or none"
    )


def source_url(source: str) -> str:
    """Return the first part of the URLs of a source; raises InvalidInput for an empty name."""
    return f"{PARTITIONS}{require_name(source, 'a source')}"


def period_of(url: str) -> date | None:
    """Return the first day of the period in the URL of a partition; None if it names no period.

    Examples
    --------
    >>> str(period_of("partition://news/2026-11-01-00000.jsonl"))
    '2026-11-01'
    >>> period_of("partition://news/00000.jsonl") is None
    True
    """
    found = _PERIOD.search(url)
    return None if found is None else date.fromisoformat(found[1])


def _url(source: str, place: int | str) -> str:
    name = place if isinstance(place, str) else f"{place:05d}"
    return f"{source_url(source)}/{name}.jsonl"

"""Convert documents of a caller to shards, which are files or partitions of a collection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any, cast

from dask.base import is_dask_collection
from distributed import Client

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.progress import PartProgress
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.interface.partition_transfer import BringingClient, Partition
from streaming_moments.pipelines.interface.partitions import (
    Held,
    Lazy,
    collected,
    is_collection,
    marked,
    period_of,
    source_url,
    windows,
)
from streaming_moments.pipelines.interface.records import Fields
from streaming_moments.pipelines.interface.running import warn_caller
from streaming_moments.pipelines.jobs.outputs.own_index import OwnIndex, Typed, Whole
from streaming_moments.pipelines.jobs.outputs.transform import TransformResult
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import DateRange, Period
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.shards import PARTITIONS, Shard

_PILOT = "pilot"  # name of the source of documents that are sampled but not counted
_SHOWN = 5
_LONGEST = 80  # a message shows at most this many characters of a text that is not a URL


@dataclass(frozen=True)
class Given:
    """Shards that the caller gave: files, or partitions with their documents.

    parts : the partition of each shard, or empty if the shards are files
    own_index : index of the caller's documents, if these are a frame or series
    window : number of the window of a large iterable, from 1
    """

    shards: Sequence[Shard]
    parts: tuple[Held | Lazy, ...] = ()
    own_index: OwnIndex | None = None
    window: int = 1

    @classmethod
    def of(cls, parts: Sequence[Held | Lazy], own_index: OwnIndex | None = None) -> Given:
        """Return partitions together with their shards."""
        return cls([part.shard for part in parts], tuple(parts), own_index)

    @classmethod
    def joined(cls, several: Iterator[Given]) -> Given:
        """Join several groups of shards into one; raises InvalidInput if no group is given."""
        listed = list(several)
        if len(listed) == 1:
            return listed[0]
        if not listed:
            raise InvalidInput("there are no documents; give some")
        return cls.of([part for one in listed for part in one.parts], listed[0].own_index)

    def labelled(self, result: TransformResult) -> TransformResult:
        """Return the result of a transform with the index of the caller's documents."""
        if self.own_index is not None or not all(isinstance(one, Held) for one in self.parts):
            return replace(result, own_index=self.own_index)
        called = [name for one in self.parts if isinstance(one, Held) for name in one.called]
        return replace(result, own_index=Whole.of_values(called) if called else None)

    def on(self, run: Run) -> Run:
        """Return the run with a client that sends partitions to the tasks that read them."""
        if not self.parts:
            return run
        partitions = cast("Mapping[str, Partition]", {one.shard.url: one for one in self.parts})
        bringing = BringingClient(run.cluster.client, partitions)
        run = replace(run, cluster=replace(run.cluster, client=cast("Client", bringing)))
        if self.window == 1:
            return run
        # the number of shards of later windows is unknown, so each window has its own progress
        return replace(run, progress=PartProgress(run.progress, self.window))

    def uncounted(self, ledger: Ledger) -> Sequence[Shard]:
        """Return the shards, without partitions that are already counted.

        Raises InvalidInput for partitions that were counted with other content.
        """
        if not self.parts:
            return self.shards
        left: list[Shard] = []
        changed: list[str] = []
        for part in self.parts:
            record = ledger.find(part.shard.url)
            if record is None:
                left.append(part.shard)
            elif part.mark and record.fingerprint != part.mark:
                changed.append(part.shard.url)
        if changed:
            were = "was" if len(changed) == 1 else "were"
            raise InvalidInput(
                f"{of_number(len(changed), 'partition')} {were} counted with other content: "
                f"{_some(changed)}. Give the documents unchanged, or first forget the counted ones "
                "with allow_again=True, or use a new source name for the new documents"
            )
        return left


def require_all_there(source: str, given: Set[str], ledger: Ledger) -> None:
    """Raise InvalidInput if counted partitions of a source are missing from the given ones.

    `source` is the name that the caller gave. `given` are the URLs of all non-empty partitions that
    the caller gave.
    """
    gone = [url for url in ledger.under(f"{source_url(source)}/") if url not in given]
    if gone:
        raise InvalidInput(
            f"{len(gone)} counted partitions are missing: {_some(gone)}. Give all counted "
            "partitions, or first forget the missing ones, or use a new source name for the new "
            "documents"
        )


def _some(urls: Sequence[str]) -> str:
    return f"{', '.join(urls[:_SHOWN])}{', ...' if len(urls) > _SHOWN else ''}"


def given_as(
    documents: Any,
    source: str | None,
    fields: Fields,
    run: Run,
    kind: str | None = None,
    counted: Callable[[str], bool] | None = None,
    keep_going: bool = False,
    apart: Callable[[str], bool] | None = None,
    by: Period | None = None,
) -> Iterator[Given]:
    """Yield the documents of the caller as shards, some at a time.

    Raises InvalidInput for documents of an unknown type or without a source. Also raises it for a
    period `by` if the documents have no dates, or are of a type that is not cut by periods. Raises
    ShardError for shards that cannot be listed or encoded, as `list_shards`, `marked` and `windows`
    do.
    """
    if by is not None:
        require_cut(documents, source, fields, by)
    documents = with_urls(documents)
    urls = [documents] if isinstance(documents, str) else documents
    if source is None and isinstance(urls, Sequence) and urls:
        if all(isinstance(one, str) for one in urls):
            yield Given(_listed(urls, run, kind, counted, apart))
            return
        shards = [one for one in urls if isinstance(one, Shard)]
        if len(shards) == len(urls):
            yield Given(shards)
            return
    if source is None or not isinstance(source, str):
        raise InvalidInput(
            f"the documents are of type {type(documents).__name__}, and the source is "
            f"{source!r}; give URLs of shards, or name texts and collections with source='NAME'"
        )
    if is_collection(documents):
        parts = marked(collected(documents, source, fields), run, keep_going)
        if parts:
            yield Given.of(parts, own_index_of(documents, fields))
        return
    own = own_index_of(documents, fields)
    for number, window in enumerate(windows(documents, source, fields, by), 1):
        yield replace(Given.of(window, own), window=number)


def require_same_cut(source: str, by: Period | None, ledger: Ledger) -> None:
    """Raise InvalidInput if partitions of a source were cut in another way when they were counted.

    Otherwise their documents would be counted twice.
    """
    for url in ledger.under(f"{source_url(source)}/"):
        first = period_of(url)
        same = by is None if first is None else by and DateRange(first, first).period(by).first
        if same not in (True, first):
            cut = "not cut by periods" if first is None else f"cut by periods, such as {first}"
            raise InvalidInput(
                f"source {source!r} was {cut} when it was counted, but by is {by!r} now; give the "
                "same value of by, or another source for other documents; to cut these documents "
                "otherwise, count them in a new store"
            )


def require_cut(documents: Any, source: str | None, fields: Fields, by: Period) -> None:
    """Raise InvalidInput if the documents cannot be cut by periods.

    This needs an iterable with a source, and a store that reads dates.
    """
    if source is None or is_collection(documents):
        raise InvalidInput(
            f"by is {by!r}, but only iterables with a source are cut into periods; give partitions "
            f"or shards of one {by} each"
        )
    if fields.date is None:
        raise InvalidInput(
            f"by is {by!r}, but the store reads no dates; create it with "
            "CountingOptions(date_column=...)"
        )


def own_index_of(documents: Any, fields: Fields) -> OwnIndex | None:
    """Return the index of a frame or series of pandas or Dask; None for other types."""
    import pandas as pd

    lazy = is_dask_collection(documents) and hasattr(documents, "divisions")
    if not fields.named or not (lazy or isinstance(documents, (pd.DataFrame, pd.Series))):
        return None
    own = documents.index if fields.id is None else documents[fields.id]
    if lazy:
        return Typed(own.dtype, own.name)
    if fields.id is None and not own.is_unique:
        warn_caller(
            f"the index repeats: {of_number(own.nunique(), 'value')} of "
            f"{of_number(len(own), 'document')}, so a join by it would multiply rows; give "
            "documents.reset_index(drop=True), or id_column"
        )
    # use no index if a row has no id, because that row is named by its position
    known = fields.id is None or bool(own.notna().all())
    return Whole(own if isinstance(own, pd.Index) else pd.Index(own)) if known else None


def require_no_source(documents: Any, source: str | None, ledger: Ledger) -> None:
    """Raise InvalidInput if the name of a counted source is given in place of its documents."""
    if source is None and isinstance(documents, str) and ledger.under(f"{PARTITIONS}{documents}/"):
        raise InvalidInput(
            f"{documents!r} is the source of counted documents, but the store does not contain "
            f"them; give the documents as they were counted, with source={documents!r}"
        )


def _listed(
    urls: Sequence[str],
    run: Run,
    kind: str | None,
    counted: Callable[[str], bool] | None,
    apart: Callable[[str], bool] | None,
) -> Sequence[Shard]:
    try:
        return list_shards(list(urls), run.storage_options, kind, counted=counted, apart=apart)
    except (InvalidInput, ShardError) as error:
        if not any(" " in one for one in urls):
            raise
        first = shorten(urls[0], _LONGEST, placeholder=" ...")
        raise InvalidInput(
            f"texts without a source are read as URLs of shards, and these cannot be listed: "
            f"{first!r}{' and others' if len(urls) > 1 else ''}; name documents with "
            "source='NAME', or check the URLs"
        ) from error


def with_urls(documents: Any) -> Any:
    """Convert a path, or a list of paths, to texts; return other documents as they are."""
    if isinstance(documents, os.PathLike):
        return os.fspath(documents)
    if isinstance(documents, (list, tuple)) and documents:
        paths = [os.fspath(one) for one in documents if isinstance(one, os.PathLike)]
        return paths if len(paths) == len(documents) else documents
    return documents


def name_of_sampled(documents: Any) -> str | None:
    """Return a source name for documents that are only sampled; None if they may be URLs."""
    documents = with_urls(documents)
    listed = [documents] if isinstance(documents, str) else documents
    if isinstance(listed, (list, tuple)) and all(isinstance(one, (str, Shard)) for one in listed):
        return None
    return _PILOT if not isinstance(listed, Sequence) or listed else None

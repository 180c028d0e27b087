"""Count the passages of documents, and yield the counts with the names of the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.storage.contents import changed
from streaming_moments.storage.counting.counting import CountedPassages
from streaming_moments.storage.counting.reading import Index, require_fitting, steadily
from streaming_moments.storage.documents import ids_of, read_chunks
from streaming_moments.storage.formats import DEFAULT_LIMITS, Position, ReadLimits
from streaming_moments.storage.shards import Shard, ShardFormat

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NamedDocuments:
    """Consecutive documents of a shard.

    counted : word counts of the passages of these documents
    first : number of the first document in the shard, from 0
    ids : (documents,) string array of the names of the documents, without nulls
    texts : the documents: an array, an IdChunk or a table
    """

    counted: CountedPassages
    first: int
    ids: pa.StringArray
    texts: Any


def read_named(
    shard: Shard,
    form: ShardFormat,
    index: Index,
    id_column: str | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[NamedDocuments]:
    r"""Count the documents of a shard as `read_indexed` does, and yield them with their names.

    The names are those that `ids_of` reads. A document without a name is called `SHARD#NUMBER`.

    Examples
    --------
    >>> import fsspec
    >>> from streaming_moments.statistics.counts.vocabulary import Vocabulary
    >>> from streaming_moments.storage.counting.counting import WordIndex
    >>> from streaming_moments.storage.counting.tokens import TokenPolicy
    >>> fsspec.filesystem("memory").pipe("/known/a.csv", b"id,text\nx,sea law\ny,law")
    >>> index = WordIndex.of(Vocabulary(("law",), core=1), TokenPolicy())
    >>> shard = Shard("memory:///known/a.csv", 23)
    >>> [read] = read_named(shard, ShardFormat(), index, "id")
    >>> read.ids.to_pylist(), read.counted.outside.tolist()
    (['x', 'y'], [1, 0])
    """
    require_fitting(shard, form, index.vocabulary)
    chunks = read_chunks(shard, form, limits, storage_options)
    names = ids_of(shard, form, id_column, limits, storage_options)
    return steadily(_named(chunks, names, index, shard.url), shard, storage_options)


def _named(
    chunks: Iterable[tuple[Any, Position]],
    names: Iterator[pa.Array],
    index: Index,
    url: str,
) -> Iterator[NamedDocuments]:
    read = with_names((chunk for chunk, _ in chunks), len, names, url)
    for chunk, first, ids in read:
        yield NamedDocuments(index.counted(chunk), first, ids, chunk)


def with_names(
    chunks: Iterable[T], size: Callable[[T], int], names: Iterator[pa.Array], url: str
) -> Iterator[tuple[T, int, pa.StringArray]]:
    """Yield each chunk of a shard, the number of its first document, and names of its documents.

    `size` returns the number of documents in a chunk. `names` come from `ids_of`, in batches of any
    size. A document without a name is called `SHARD#NUMBER`. Raises ShardError if there are fewer
    names than documents, because the shard must then have changed.

    Examples
    --------
    >>> found = with_names(["ab", "c"], len, iter([pa.array(["x", None, "z"])]), "a.csv")
    >>> [(chunk, first, ids.to_pylist()) for chunk, first, ids in found]
    [('ab', 0, ['x', 'a.csv#1']), ('c', 2, ['z'])]
    """
    first, held = 0, next(names, None)
    for chunk in chunks:
        number = size(chunk)
        ids = _numbered(url, first, number)
        while held is not None and len(held) < number:
            more = next(names, None)
            if more is None:
                raise changed(url)
            held = pa.concat_arrays([held, more])
        if held is not None:
            ids, held = pc.coalesce(held[:number], ids), held[number:]
        yield chunk, first, ids
        first += number


def _numbered(url: str, first: int, number: int) -> pa.StringArray:
    """Make names for `number` documents without names, from document `first` of a shard on."""
    numbers = pa.array(np.arange(first, first + number)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{url}#", pa.string()), numbers, "")

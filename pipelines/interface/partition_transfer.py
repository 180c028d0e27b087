"""Send the contents of partitions to the tasks that read them.

A partition is a shard whose content is in no file. A task that reads one gets its content as a
dependency. So Dask runs the task where the content is, and computes the content again if it is
lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import fsspec
from distributed import Client, Future

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.interface.records import Encoded
from streaming_moments.storage.shards import Shard


class Partition(Protocol):
    """Some documents of a collection."""

    @property
    def shard(self) -> Shard:
        """Shard under which a ledger records the partition."""

    def content(self, client: Client) -> Future[Any]:
        """Return a future of the documents (`Encoded`), or of a `ShardError` if they are bad."""


@dataclass(frozen=True)
class BringingClient:
    """Client that sends the contents of partitions to the process of each task that reads them.

    `partitions` maps the URL of a shard to its partition. All other calls go to `client`.
    """

    client: Client
    partitions: Mapping[str, Partition]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def submit(self, function: Callable[..., Any], *args: Any, **how: Any) -> Future[Any]:
        """Submit a task, together with the contents of the partitions that it reads."""
        urls = dict.fromkeys(shard.url for arg in args for shard in _shards_in(arg))
        contents = {
            url: self.partitions[url].content(self.client) for url in urls if url in self.partitions
        }
        if not contents:
            return self.client.submit(function, *args, **how)
        return self.client.submit(with_contents, contents, function, *args, **how)


def with_contents(
    contents: Mapping[str, Encoded | ShardError], function: Callable[..., Any], *args: Any
) -> Any:
    """Put contents into the memory of this process, and call a function that reads them."""
    held: dict[str, bytes] = {}
    for url, content in contents.items():
        if isinstance(content, ShardError):
            raise content
        held[url] = content.content
    with _in_memory(held) as places:
        return function(*(_placed(arg, places) for arg in args))


@contextmanager
def _in_memory(contents: Mapping[str, bytes]) -> Iterator[dict[str, Shard]]:
    files = fsspec.filesystem("memory")
    folder = f"/partitions-{uuid.uuid4().hex}"
    places = {
        url: Shard(url, len(content), read_at=f"memory://{folder}/{number}.jsonl")
        for number, (url, content) in enumerate(contents.items())
    }
    try:
        for url, shard in places.items():
            files.pipe(shard.read_at, contents[url])
        yield places
    finally:
        for shard in places.values():
            if files.exists(shard.read_at):
                files.rm_file(shard.read_at)


def _shards_in(arg: Any) -> Sequence[Shard]:
    if isinstance(arg, Shard):
        return (arg,)
    if isinstance(arg, Bundle):
        return arg.shards
    if isinstance(arg, Sequence) and not isinstance(arg, (str, bytes)):
        return [shard for one in arg for shard in _shards_in(one)]
    return ()


def _placed(arg: Any, places: Mapping[str, Shard]) -> Any:
    """Replace the shards in an argument of a task by shards in the memory of its worker."""
    if isinstance(arg, Shard):
        return places.get(arg.url, arg)
    if isinstance(arg, Bundle):
        return replace(arg, shards=tuple(places.get(one.url, one) for one in arg.shards))
    if _shards_in(arg):
        return [_placed(one, places) for one in arg]
    return arg

"""Back ends of storage: what each one's fsspec client does, and which errors it raises."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import fsspec

from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")


@dataclass(frozen=True)
class Backend:
    """A back end, or what is known of any.

    protocols : its names in URLs
    creates : how a file is created so that one of two writers is refused, whatever happens: by a
        "link" of a local disk, in one "step" of memory, by the "condition" of a put that its client
        sends for mode="create"; "look": only as far as a look beforehand tells
    buckets : whether paths begin with a bucket, which may not exist
    content_type : how its client is told what a file is, so that a browser shows a page and does
        not store it; empty where it cannot be told
    in_chunks : whether its client would send a large file in several requests, of which the first
        has the condition
    parts_at_once : how its client is told the most parts of a file that it reads at a time. Unless
        it is 1, it asks for the size of each file first, and the parts may be of two contents
    errors : modules and names of errors that are no OSError: the storage cannot be read or written.
        Each raises FileNotFoundError where there is no file, PermissionError where it may not be
        read
    """

    protocols: frozenset[str] = frozenset()
    creates: Literal["link", "step", "condition", "look"] = "look"
    buckets: bool = False
    content_type: str = ""
    in_chunks: bool = False
    parts_at_once: str = ""
    errors: tuple[tuple[str, str], ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether files are on this machine's disks."""
        return self.creates == "link"

    @property
    def in_one_request(self) -> dict[str, int]:
        """What its client is told so that a whole file is read in one request."""
        return {self.parts_at_once: 1} if self.parts_at_once else {}


BACKENDS = (
    Backend(frozenset({"file", "local"}), "link"),
    Backend(frozenset({"memory"}), "step"),
    Backend(
        frozenset({"s3", "s3a"}),
        "condition",
        buckets=True,
        content_type="ContentType",
        parts_at_once="max_concurrency",
        errors=(
            ("botocore.exceptions", "BotoCoreError"),
            ("botocore.exceptions", "ClientError"),
            ("aiohttp", "ClientError"),
        ),
    ),
    Backend(
        frozenset({"gs", "gcs"}),
        "condition",
        buckets=True,
        content_type="content_type",
        in_chunks=True,
        errors=(
            ("aiohttp", "ClientError"),
            ("gcsfs.retry", "HttpError"),
            ("google.auth.exceptions", "GoogleAuthError"),
        ),
    ),
    Backend(
        frozenset({"az", "abfs", "abfss"}),
        "condition",
        buckets=True,
        errors=(("azure.core.exceptions", "AzureError"),),
    ),
    Backend(frozenset({"http", "https"}), errors=(("aiohttp", "ClientError"),)),
)
_ANY_OTHER = Backend()
# Where file systems say when a file was written.
TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


def backend_of(fs: fsspec.AbstractFileSystem) -> Backend:
    """The back end of a file system; one that is not in the table can be read and written.

    Examples
    --------
    >>> backend_of(fsspec.filesystem("memory")).creates
    'step'
    """
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    found = (one for one in BACKENDS if not protocols.isdisjoint(one.protocols))
    return next(found, _ANY_OTHER)


def is_local(protocol: str) -> bool:
    """Whether a protocol is of this machine's disks."""
    return any(one.is_local and protocol in one.protocols for one in BACKENDS)


def storage_errors() -> tuple[type[Exception], ...]:
    """What the system, Arrow and the clients of object stores raise."""
    # Clients of object stores have errors outside OSError; only one that is loaded can raise.
    clients = dict.fromkeys(error for one in BACKENDS for error in one.errors)
    loaded = [getattr(sys.modules.get(module), name, None) for module, name in clients]
    ours = (OSError, EOFError, pa.ArrowInvalid, pa.ArrowNotImplementedError)
    return (*ours, *(error for error in loaded if error is not None))

"""Properties of each kind of storage and its fsspec client, such as the errors that it raises."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Literal

import fsspec

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.extras import needs
from streaming_moments.storage.files.client_options import option_remedy
from streaming_moments.storage.lazy_libraries import pa


@dataclass(frozen=True)
class Backend:
    """Properties of a kind of storage, such as S3, and of its fsspec client.

    protocols : its names in URLs
    creates : how it creates a file so that one of two writers is refused: "link" by a link on a
        local disk, "step" by one atomic step in memory, "condition" by a condition of the put
        request, which the client sends for mode="create". With "look", it is only checked before
        whether the file exists, so two writers may both succeed
    buckets : whether paths begin with a bucket, which may not exist
    content_type : name of the client's option for the type of a file, by which a browser knows that
        it is a page to show; empty if there is no such option
    in_chunks : whether the client sends a large file in several requests, of which only the first
        has the condition of `creates`
    parts_at_once : name of the client's option for the number of parts of a file that it reads at a
        time. Unless this is 1, the client first asks for the size of each file, and if the file is
        replaced meanwhile, the parts may come from different contents. Empty if there is no such
        option
    connections : name of the client's option for connections, and the settings in it that this
        package makes
    errors : modules and names of errors other than OSError for failed reads and writes. All back
        ends raise FileNotFoundError for a missing file, and PermissionError for a forbidden one
    remedies : beginnings of the name or the text of an error, each with what a user can do about it
    needs : package of the client, and the extra that installs it
    """

    protocols: frozenset[str] = frozenset()
    creates: Literal["link", "step", "condition", "look"] = "look"
    buckets: bool = False
    content_type: str = ""
    in_chunks: bool = False
    parts_at_once: str = ""
    connections: tuple[str, Mapping[str, Any]] | None = None
    errors: tuple[tuple[str, str], ...] = ()
    remedies: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, str] | None = None

    @property
    def is_local(self) -> bool:
        """Whether files are on this machine's disks."""
        return self.creates == "link"

    @property
    def in_one_request(self) -> dict[str, int]:
        """Options of the client for reading a whole file in one request."""
        return {self.parts_at_once: 1} if self.parts_at_once else {}


_S3_KEYS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, here and for the workers of "
    "a cluster"
)
_SILENT = ("no answer from", "EndpointConnectionError", "ConnectTimeoutError")
_GIVEN = "in AWS_ENDPOINT_URL or the storage options"
_ENDPOINT = f"check the endpoint {_GIVEN}, its http or https, and that it is running"
BACKENDS = (
    Backend(
        frozenset({"file", "local"}),
        "link",
        remedies=(("Truncated", "write it again, because its end is missing"),),
    ),
    Backend(frozenset({"memory"}), "step"),
    Backend(
        frozenset({"s3", "s3a"}),
        "condition",
        needs=("s3fs", "s3"),
        buckets=True,
        content_type="ContentType",
        parts_at_once="max_concurrency",
        # allow more than the default of ten connections, because a segment has 70 files
        connections=("config_kwargs", MappingProxyType({"max_pool_connections": 64})),
        errors=(
            ("botocore.exceptions", "BotoCoreError"),
            ("botocore.exceptions", "ClientError"),
            ("aiohttp", "ClientError"),
        ),
        remedies=(
            ("NoCredentialsError", _S3_KEYS),
            ("PartialCredentialsError", _S3_KEYS),
            ("ProfileNotFound", "set AWS_PROFILE to a profile of ~/.aws/config, or unset it"),
            *((name, _ENDPOINT) for name in _SILENT),
            ("Invalid endpoint", "begin AWS_ENDPOINT_URL with http:// or https://"),
            ("PlainHttp", f"begin the endpoint {_GIVEN} with http://"),
            (
                "UntrustedCertificate",
                "set AWS_CA_BUNDLE to a file with the certificate of its authority",
            ),
        ),
    ),
    Backend(
        frozenset({"gs", "gcs"}),
        "condition",
        needs=("gcsfs", "gcs"),
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
        needs=("adlfs", "azure"),
        buckets=True,
        errors=(("azure.core.exceptions", "AzureError"),),
    ),
    Backend(
        frozenset({"http", "https"}),
        errors=(("aiohttp", "ClientError"),),
    ),
)
_ANY_OTHER = Backend()
# Keys of fsspec's information on a file under which clients report when it was written.
TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


def backend_of(fs: fsspec.AbstractFileSystem) -> Backend:
    """Return the properties of a file system; an unknown one gets those of `Backend()`.

    Examples
    --------
    >>> backend_of(fsspec.filesystem("memory")).creates
    'step'
    """
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    found = (one for one in BACKENDS if not protocols.isdisjoint(one.protocols))
    return next(found, _ANY_OTHER)


def is_local(protocol: str) -> bool:
    """Whether the protocol of a URL means the disks of this machine."""
    return any(one.is_local and protocol in one.protocols for one in BACKENDS)


def require_bucket_name(url: str) -> str:
    """Return a URL unchanged; raise InvalidInput if its protocol needs a bucket and it has none.

    Examples
    --------
    >>> require_bucket_name("s3://corpus/a.txt"), require_bucket_name("corpus/a.txt")
    ('s3://corpus/a.txt', 'corpus/a.txt')
    >>> require_bucket_name("s3:///corpus/a.txt")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: s3:///corpus/a.txt names no bucket; write \
s3://BUCKET/FOLDER, here perhaps s3://corpus/a.txt
    """
    scheme, colon, rest = url.partition(":")
    protocol = scheme.lower()
    if not colon or not any(one.buckets and protocol in one.protocols for one in BACKENDS):
        return url
    bucket = rest.removeprefix("//").partition("/")[0]
    if rest.startswith("//") and bucket and not any(map(str.isspace, bucket)):
        return url
    meant = rest.strip("/")
    named = meant and not set("*?[ ").intersection(meant.partition("/")[0])
    perhaps = f", here perhaps {protocol}://{meant}" if named else ""
    if bucket and rest.startswith("//"):
        raise InvalidInput(f"{url} has a space in the name of its bucket; correct the URL")
    raise InvalidInput(f"{url} names no bucket; write {protocol}://BUCKET/FOLDER{perhaps}")


def lacks_client(protocol: str) -> str | None:
    """Return what to install for a protocol whose client is missing; None for unknown protocols.

    Examples
    --------
    >>> str(lacks_client("gs")).partition(";")[0]
    'gs:// needs gcsfs, which is not installed'
    """
    found = (one.needs for one in BACKENDS if protocol in one.protocols and one.needs)
    return next((needs(f"{protocol}://", *one) for one in found), None)


def client_options(protocol: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options given for a client, and one that allows enough connections for many files.

    Examples
    --------
    >>> client_options("s3", {"config_kwargs": {"read_timeout": 5}})
    {'config_kwargs': {'max_pool_connections': 64, 'read_timeout': 5}}
    """
    for one in BACKENDS:
        if protocol in one.protocols and one.connections is not None:
            name, settings = one.connections
            return {**given, name: {**settings, **(given.get(name) or {})}}
    return dict(given)


def remedy_of(error: BaseException) -> str | None:
    """Return what a user can do about an error of a client; None if nothing special is known.

    Examples
    --------
    >>> remedy_of(ValueError("Invalid endpoint: localhost:9000"))
    'begin AWS_ENDPOINT_URL with http:// or https://'
    """
    if lacks_space(error):
        return "free some space, then run this again"
    if isinstance(error, PermissionError):
        # an error without an errno is not from a local disk, but from the client of an object store
        local = isinstance(error.errno, int)
        return _permissions(error) if local else "check the credentials and their permissions"
    for begin, remedy in (pair for one in BACKENDS for pair in one.remedies):
        if type(error).__name__ == begin or str(error).startswith(begin):
            return remedy
    return option_remedy(error)


def _permissions(error: PermissionError) -> str:
    """Return what to do about a refused permission on a local disk; names both users."""
    if os.name != "posix":
        return "check the permissions"
    told = f"check the permissions: this process runs as user {os.geteuid()}"
    if not isinstance(error.filename, str):
        return told
    # name the owner of the file, or of the nearest folder above it that can be seen: the file may
    # not exist yet, and its folder may be closed to this process
    for place in (error.filename, *map(str, PurePath(os.path.abspath(error.filename)).parents)):
        try:
            found = os.stat(place)
        except OSError:
            continue
        return (
            f"{told}, and {place} belongs to user {found.st_uid} (mode {found.st_mode & 0o777:o})"
        )
    return told


def lacks_space(error: BaseException | None) -> bool:
    """Whether an error, or its cause, says that a disk is full or a quota is used up."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def storage_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the operating system, Arrow and clients of object stores raise."""
    # Clients of object stores raise errors that are not an OSError. Look up only the errors of
    # clients that are already loaded, because no others can occur.
    clients = dict.fromkeys(error for one in BACKENDS for error in one.errors)
    loaded = [getattr(sys.modules.get(module), name, None) for module, name in clients]
    ours = (OSError, EOFError, pa.ArrowInvalid, pa.ArrowNotImplementedError)
    return (*ours, *(error for error in loaded if error is not None))

"""Say what to do about storage options that a client refuses, such as an unknown option."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from urllib.parse import urlsplit

from streaming_moments.printing.nearest import guess

_UNKNOWN = re.compile(r"(.*?)(?:\(\) got an|Got) unexpected keyword argument '(\w+)'")
_ENDPOINT = re.compile("Custom endpoint `(.*)` was not a valid URI")
_OTHERWISE = "correct or remove this option in --storage-options or [storage_options]"
# Each key is a function of a client that can refuse an option. Its values are the functions whose
# arguments are the valid options.
_TAKES = {
    "AioSession.__init__": ("s3fs:S3FileSystem.__init__",),
    "AioSession._create_client": ("botocore.session:Session.create_client",),
    "": ("botocore.config:Config.OPTION_DEFAULTS",),  # errors of Config do not name a function
    "ClientSession._request": (
        "aiohttp:ClientSession._request",
        "fsspec.implementations.http:HTTPFileSystem.__init__",
    ),
}
_NOT_OPTIONS = {"self", "args", "kwargs", "str_or_url", "method"}


def unknown_option(error: BaseException) -> str | None:
    """Return the name of the unknown option that a client refused; None for other errors.

    Examples
    --------
    >>> unknown_option(TypeError("AioSession.__init__() got an unexpected keyword argument 'kee'"))
    'kee'
    """
    found = _refused(error)
    return found[2] if found else None


def option_remedy(error: BaseException) -> str | None:
    """Return what to do about an option that a client refuses; None for other errors."""
    if found := _refused(error):
        near = guess(found[2], _options_of(found[1]))
        return f"{near} Otherwise {_OTHERWISE}" if near else _OTHERWISE
    if wrong := _ENDPOINT.search(str(error)):
        where = "in AWS_ENDPOINT_URL or the storage options"
        try:
            urlsplit(wrong[1]).port  # noqa: B018
        except ValueError:
            return f"the port of the endpoint is not a number up to 65535: correct it {where}"
        return f"write the endpoint as http://HOST:PORT {where}"
    return None


def _refused(error: BaseException) -> re.Match[str] | None:
    found = _UNKNOWN.search(str(error)) if isinstance(error, TypeError) else None
    return found if found and found[1] in _TAKES else None


def _options_of(function: str) -> Iterator[str]:
    for place in _TAKES[function]:
        module, _, path = place.partition(":")
        kind, _, name = path.partition(".")
        takes = getattr(getattr(import_module(module), kind), name)
        names = inspect.signature(takes).parameters if callable(takes) else takes
        yield from (one for one in names if one not in _NOT_OPTIONS)

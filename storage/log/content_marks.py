"""Content marks: fingerprints that identify the content of a shard, whatever its URL."""

from __future__ import annotations

import re

# Pattern of marks that identify content: a SHA-256, or an MD5 as S3 and Google write it, also for
# multipart uploads. Other ETags only show whether one URL has changed: web servers derive them from
# size and time, and Azure from the time.
_OF_CONTENT = re.compile(
    r"sha256:[0-9a-f]{64}|etag:(?:[0-9a-f]{32}(?:-[0-9]+)?|[A-Za-z0-9+/]{22}==)"
)
OF_CONTENT = rf"\A(?:{_OF_CONTENT.pattern})\z"  # the same pattern for Arrow


def tells_content(mark: str) -> bool:
    """Whether equal fingerprints and sizes mean equal content, whatever the URLs.

    Examples
    --------
    >>> tells_content("etag:d41d8cd98f00b204e9800998ecf8427e"), tells_content("etag:65f1a2b3-1f4")
    (True, False)
    """
    return _OF_CONTENT.fullmatch(mark) is not None

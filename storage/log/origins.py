"""Origins: names of shards that other stores counted.

A name in an object store or on the web means the same shard at all sites. A path on a disk or in
HDFS, a server on the same machine, or a collection counted from Python, is a name within one site:
other sites may use it for other documents. The ledger therefore puts the origin before such names.
"""

from __future__ import annotations

import re

from streaming_moments.storage.files.urls import OF_ORIGIN
from streaming_moments.storage.lazy_libraries import pa, pc

MERGE = "merge"  # operation of a commit that copies the segments of an origin
_SHARED = "(?i)^[a-z][a-z0-9+.-]*://"
_OF_A_SITE = "(?i)^(?:(?:file|local|memory|partition|hdfs)://|https?://(?:localhost|127[.]0[.]0[.]1)(?:[:/]|$))"


def name_in(origin: str, url: str) -> str:
    """Return the name in the ledger for a shard of an origin.

    Examples
    --------
    >>> name_in("emea", "/data/a.txt"), name_in("emea", "s3://data/a.txt")
    ('origin://emea//data/a.txt', 's3://data/a.txt')
    >>> name_in("emea", "http://localhost:80/a.txt"), name_in("emea", "http://localhost.org/a.txt")
    ('origin://emea/http://localhost:80/a.txt', 'http://localhost.org/a.txt')
    """
    shared = re.match(_SHARED, url) and not re.match(_OF_A_SITE, url)
    return url if shared else f"{names_of(origin)}{url}"


def names_of(origin: str) -> str:
    """Return how the ledger's names of shards begin that exist only at the site of an origin."""
    return f"{OF_ORIGIN}{origin}/"


def name_there(origin: str, url: str) -> str:
    """Return the name that a shard in the ledger has at its origin; the reverse of `name_in`.

    Examples
    --------
    >>> name_there("emea", "origin://emea//data/a.txt"), name_there("emea", "s3://data/a.txt")
    ('/data/a.txt', 's3://data/a.txt')
    """
    return url.removeprefix(names_of(origin))


def renamed(table: pa.Table, origin: str) -> pa.Table:
    """Return records of an origin with their names in the ledger, as `name_in` gives them."""
    urls = table["url"]
    shared = pc.and_(
        pc.match_substring_regex(urls, _SHARED),
        pc.invert(pc.match_substring_regex(urls, _OF_A_SITE)),
    )
    own = pc.binary_join_element_wise(f"{OF_ORIGIN}{origin}", urls, "/")
    return table.set_column(0, table.schema.field("url"), pc.if_else(shared, urls, own))

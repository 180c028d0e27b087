"""URLs: the name of a shard, and the secrets that no URL may hold."""

from __future__ import annotations

import re

from streaming_moments.errors import InvalidInput

OF_ORIGIN = "origin://"  # beginning of the names of shards that other stores counted

# Parameters of signed requests, for each method of signing. A key of this dict is a parameter that
# every request signed by the method has. The value is a pattern of all parameters of the method.
_SIGNATURES = {
    # Azure's shared access signatures for an account, a container or a user
    "sig": re.compile(
        "sig|se|sp|sv|sr|st|ss|srt|spr|sip|ses|sdd|si|skoid|sktid|skt|ske|sks|skv|saoid|suoid|scid"
    ),
    # version 2 of the signatures of S3 and Google, and signatures of CloudFront and Alibaba
    "Signature": re.compile(
        "Signature|Expires|AWSAccessKeyId|GoogleAccessId|OSSAccessKeyId|Key-Pair-Id|Policy|"
        "Hash-Algorithm|security-token"
    ),
}
_PREFIXES = ("x-amz-", "x-goog-", "x-oss-")
# Parameters that services accept as keys to a whole account or folder.
_KEY = re.compile(
    "(?:access_|auth_)?token|sas|pass(?:word|wd)|pwd|(?:client_)?secret(?:_key)?|"
    "(?:access|account)_key|api[_-]?key",
    re.I,
)
_USER = re.compile(r"://[^/?#]*@")
_CONTAINER = re.compile(r"(?:abfss?|wasbs?|az|adl)://[^/?#@:]+@[^/?#@]+(?:[/?#].*)?", re.I | re.S)
_HTTP = re.compile(r"https?://(?:\[[^\]/?#@]*\]|[^/?#:@\[\]]*)(?::\d*)?(?:[/?#].*)?", re.I | re.S)
_SLASHES = re.compile("(?<=[^/])//+")
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HIDDEN = re.compile(
    r"(?P<name>[?&](?:x-(?:amz|goog|oss)-[\w-]+|sig|signature|policy|security-token|"
    rf"AWSAccessKeyId|GoogleAccessId|OSSAccessKeyId|{_KEY.pattern})=)[^&#\s'\")>\]]+",
    re.I,
)
_USER_IN_TEXT = re.compile(r"://[^/?#\s]*@")


def shard_name(url: str) -> str:
    r"""Return the name of a URL's shard for the ledger.

    The name does not depend on signatures in the URL. In an http URL, the host becomes lower case;
    the default port, the fragment and the parameters of signatures are left out. Bytes of a local
    name that are not UTF-8 are written as `\xe9`. A local file is given by its absolute path.

    Examples
    --------
    >>> shard_name("https://Bucket.S3.amazonaws.com:443/a.txt?X-Amz-Signature=7f&versionId=3")
    'https://bucket.s3.amazonaws.com/a.txt?versionId=3'
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in _DEFAULT_PORTS:
        return _NOT_UTF8.sub(_escaped, url)
    place, mark, query = rest.partition("#")[0].partition("?")
    host, slash, path = place.partition("/")
    host = host.lower().removesuffix(f":{_DEFAULT_PORTS[scheme.lower()]}")
    kept = _unsigned(query)
    return f"{scheme.lower()}://{host}{slash}{path}{mark if kept else ''}{kept}"


def single_slashed(url: str) -> str:
    """Return a URL of an object store without repeated slashes; other URLs stay unchanged.

    Keys of objects may have repeated slashes, so callers try the result only if no object has the
    given URL.

    Examples
    --------
    >>> single_slashed("s3://bucket//corpus//a.txt"), single_slashed("https://host//a.txt")
    ('s3://bucket/corpus/a.txt', 'https://host//a.txt')
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() in _DEFAULT_PORTS:
        return url
    return f"{scheme}://{_SLASHES.sub('/', rest)}"


def is_utf8(url: str) -> bool:
    r"""Whether a URL can be written as UTF-8; some names on local disks cannot.

    Examples
    --------
    >>> is_utf8("/corpus/\u00e9t\u00e9.txt"), is_utf8("/corpus/\udce9t\udce9.txt")
    (True, False)
    """
    return not _NOT_UTF8.search(url)


def require_no_user(url: str) -> str:
    """Return a URL; raises InvalidInput, without the URL, if it holds a user or password.

    The account of an Azure container, `abfs://container@account`, is allowed.

    Examples
    --------
    >>> require_no_user("http://me:hushhush@host/a.txt")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: http://*** holds a password, a user name or an \
invalid port; give credentials in the storage options
    """
    scheme = url.partition("://")[0]
    if scheme.lower() in _DEFAULT_PORTS and not _HTTP.fullmatch(url):
        # show no host, as the text after the colon may be part of a password instead of a port
        where = f"{scheme}://***"
    elif _USER.search(url) and not _CONTAINER.fullmatch(url):
        where = without_secrets(_USER.sub("://***@", url))
    else:
        return url
    raise InvalidInput(
        f"{where} holds a password, a user name or an invalid port; give credentials in the "
        "storage options"
    )


def require_no_secret(url: str) -> str:
    """Return the URL of a folder to write to; InvalidInput if it holds credentials.

    Credentials are a user name or password, or a signature or key in the query.

    Examples
    --------
    >>> require_no_secret("https://host/store?sv=2024&sig=7f%3D")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: https://host/store holds a signature or a key in its \
query; give credentials in the storage options
    """
    require_no_user(url)
    query = url.partition("?")[2] if "://" in url else ""
    names = {part.partition("=")[0] for part in query.split("&")}
    if _unsigned(query) != query or any(map(_KEY.fullmatch, names)):
        raise InvalidInput(
            f"{without_secrets(url.partition('?')[0])} holds a signature or a key in its query; "
            "give credentials in the storage options"
        )
    return url


def is_of_origin(url: str) -> bool:
    """Whether a shard with this name was counted by another store from its local disk."""
    return url.startswith(OF_ORIGIN)


def is_signed(url: str) -> bool:
    """Whether a URL contains a signature, which is not part of the name of a shard.

    Examples
    --------
    >>> is_signed("https://host/a.txt?sig=7f"), is_signed("https://host/a.txt?page=2")
    (True, False)
    """
    query = url.partition("?")[2].partition("#")[0]
    return url.lower().startswith(("http://", "https://")) and _unsigned(query) != query


def check_the(place: str) -> str:
    """Return the advice "check the URL" or "check the path", as fits a place."""
    return f"check the {'URL' if '://' in place else 'path'}"


def without_secrets(text: str) -> str:
    """Mask the user information and the signatures of all URLs in a text.

    Examples
    --------
    >>> without_secrets("no http://me:hushhush@host/a.txt?X-Amz-Signature=7f&page=2 there")
    'no http://***@host/a.txt?X-Amz-Signature=***&page=2 there'
    """
    return _HIDDEN.sub(r"\g<name>***", _USER_IN_TEXT.sub("://***@", text))


def _escaped(found: re.Match[str]) -> str:
    """Escape a byte that is not UTF-8, or half of a surrogate pair, as Python would write it."""
    point = ord(found[0])
    return f"\\x{point - 0xDC00:02x}" if 0xDC80 <= point <= 0xDCFF else f"\\u{point:04x}"


def _unsigned(query: str) -> str:
    """Return a query without the parameters of signatures."""
    parts = query.split("&")
    names = {part.partition("=")[0] for part in parts}
    families = [_SIGNATURES[mark] for mark in names & _SIGNATURES.keys()]
    return "&".join(
        part
        for part in parts
        if not part.lower().startswith(_PREFIXES)
        and not any(family.fullmatch(part.partition("=")[0]) for family in families)
    )

"""Forgotten: the list of shards that must not be counted again, stored in each commit.

Forgotten shards are listed by name and content, so that people can read the list. Purged shards are
listed only as keyed hashes: a name can be checked against the list, but not read from it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator

from streaming_moments.errors import StoreError
from streaming_moments.printing.remedies import Spell, in_words
from streaming_moments.storage.files.parts import DOCUMENT, SEALED_NAME, whole_of
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.schema import Count, Extensible

_SHOWN = 5
_KEY_BYTES = 32
_HASH_BYTES = 16
_HEXADECIMAL = re.compile(r"[0-9a-f]*")


def _hexadecimal(text: str) -> str:
    if not _HEXADECIMAL.fullmatch(text):
        raise ValueError("a hash is not hexadecimal")
    return text


_Digits = Annotated[str, AfterValidator(_hexadecimal)]


class ForgottenShard(NamedTuple):
    """A forgotten shard: its name, fingerprint and size in the ledger."""

    url: str
    fingerprint: str
    size: Count


@dataclass(frozen=True)
class Forgotten(Extensible):
    """Shards that must not be counted again.

    shards : forgotten shards, sorted
    key : key of the hashes in hexadecimal digits, drawn at random once for each store
    purged : maps the keyed hash of each purged name to hashes of its contents
    withdrawn : keyed hashes of the names of purged origins, and of their stores' identifiers
    unknown : keys of later versions, preserved

    Examples
    --------
    >>> found = Forgotten().with_forgotten([ForgottenShard("s3://corpus/1.txt", "etag:d41d", 10)])
    >>> found.reason("s3://corpus/1.txt"), found.reason("s3://corpus/2.txt")
    ('was forgotten', None)
    >>> purged = found.with_purged(["s3://corpus/1.txt"])
    >>> purged.shards, purged.reason("s3://corpus/1.txt"), purged.has_purged("s3://corpus/1.txt")
    ((), 'was purged', True)
    """

    shards: tuple[ForgottenShard, ...] = ()
    key: _Digits = ""
    purged: Mapping[_Digits, tuple[_Digits, ...]] = field(default_factory=dict)
    withdrawn: tuple[_Digits, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.shards or self.purged or self.withdrawn)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the forgotten shards, each file once, sorted."""
        return tuple(sorted({whole_of(one.url) for one in self.shards}))

    @cached_property
    def sizes(self) -> Set[int]:
        """Sizes in bytes of forgotten shards that can be recognised by content."""
        return {size for _, size in self._contents}

    def reason(self, url: str, content: tuple[str, int] | None = None) -> str | None:
        """Return why a shard must not be counted; None if it may be counted.

        Documents that a service has sealed are compared by name alone. If another user sends the
        same text, and the service accepts it, it must be counted. `content` is the fingerprint and
        size, if known.
        """
        if not self._names.isdisjoint(_names_of(url)) or url.startswith(self._folders):
            return "was forgotten"
        if url.endswith("/"):
            within = next((name for name in self.names if name.startswith(url)), None)
            if within is not None:
                return f"holds {within}, which was forgotten"
        if self.purged and any(map(self.has_purged, _names_of(url))):
            return "was purged"
        if content is None or not _is_compared(url, content[0]):
            return None
        if content in self._contents:
            return f"has the content of {self._contents[content]}, which was forgotten"
        if self.purged and self._hash_of_content(*content) in self._purged_contents:
            return "has the content of a shard that was purged"
        return None

    def has_purged(self, url: str) -> bool:
        """Whether a shard of exactly this name was purged."""
        return bool(self.purged) and self._hash(url) in self.purged

    def has_withdrawn(self, origin: str) -> bool:
        """Whether an origin was purged that has this name, or whose store has this identifier."""
        return bool(self.withdrawn) and self._hash(origin) in self.withdrawn

    def with_forgotten(self, shards: Iterable[ForgottenShard]) -> Forgotten:
        """Return the list with more forgotten shards."""
        return replace(self, shards=tuple(sorted({*self.shards, *shards})))

    def with_purged(self, names: Iterable[str], shards: Iterable[ForgottenShard] = ()) -> Forgotten:
        """Return the list with some shards purged: keyed hashes replace names and contents."""
        keyed = replace(self, key=self.key or secrets.token_hex(_KEY_BYTES))
        wholes = {name: whole_of(name) for name in names}
        hashes = {keyed._hash(name): set[str]() for name in wholes}
        known = [one for one in (*self.shards, *shards) if one.url in wholes]
        for one in known:
            if tells_content(one.fingerprint):
                hashes[keyed._hash(one.url)].add(keyed._hash_of_content(*one[1:]))
        contents = {one[1:] for one in known if tells_content(one.fingerprint)}
        gone = {*wholes, *wholes.values()}
        left = tuple(
            one for one in self.shards if whole_of(one.url) not in gone and one[1:] not in contents
        )
        purged = _merged(self.purged, {name: tuple(found) for name, found in hashes.items()})
        return replace(keyed, shards=left, purged=purged)

    def with_withdrawn(self, origins: Iterable[str]) -> Forgotten:
        """Return the list with more purged origins: keyed hashes of their names and identifiers."""
        keyed = replace(self, key=self.key or secrets.token_hex(_KEY_BYTES))
        return replace(
            keyed, withdrawn=tuple(sorted({*self.withdrawn, *map(keyed._hash, origins)}))
        )

    def without_withdrawn(self, origins: Iterable[str]) -> Forgotten:
        """Return the list without some purged origins, so that these may be merged again."""
        gone = {self._hash(one) for one in origins} if self.withdrawn else set()
        return replace(self, withdrawn=tuple(one for one in self.withdrawn if one not in gone))

    def without(self, names: Iterable[str]) -> Forgotten:
        """Return the list without any entry that forbids a shard with one of some names."""
        if not self:
            return self
        spelled = {name for url in names for name in _names_of(url)}
        folders = tuple(name for name in spelled if name.endswith("/"))
        left = tuple(
            one
            for one in self.shards
            if whole_of(one.url) not in spelled
            and not one.url.startswith(folders)
            and not (one.url.endswith("/") and any(name.startswith(one.url) for name in spelled))
        )
        gone = {self._hash(name) for name in spelled} if self.purged else set()
        purged = {name: found for name, found in self.purged.items() if name not in gone}
        return replace(self, shards=left, purged=purged)

    def joined(self, other: Forgotten) -> Forgotten:
        """Return the union with the list of another version of the store."""
        shards = tuple(sorted({*self.shards, *other.shards}))
        purged = _merged(self.purged, other.purged)
        withdrawn = tuple(sorted({*self.withdrawn, *other.withdrawn}))
        key = self.key or other.key
        return replace(self, shards=shards, key=key, purged=purged, withdrawn=withdrawn)

    def to_json(self) -> dict[str, Any]:
        """Convert the list to an object for JSON."""
        content: dict[str, Any] = {"shards": [list(one) for one in self.shards]}
        if self.purged or self.withdrawn:
            purged = {name: list(found) for name, found in self.purged.items()}
            content |= {"key": self.key, "purged": purged}
        if self.withdrawn:
            content["withdrawn"] = list(self.withdrawn)
        return {**content, **self.unknown}

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _folders(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name.endswith("/"))

    @cached_property
    def _contents(self) -> dict[tuple[str, int], str]:
        return {
            (one.fingerprint, one.size): one.url
            for one in self.shards
            if _is_compared(one.url, one.fingerprint)
        }

    @cached_property
    def _purged_contents(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.purged.values()))

    def _hash(self, name: str) -> str:
        return self._hash_of(b"name\0" + name.encode(errors="surrogatepass"))

    def _hash_of_content(self, mark: str, size: int) -> str:
        return self._hash_of(f"content\0{size}\0{mark}".encode())

    def _hash_of(self, text: bytes) -> str:
        key = bytes.fromhex(self.key)
        return hashlib.blake2b(text, digest_size=_HASH_BYTES, key=key).hexdigest()


class ShardsForgotten(StoreError):
    """Some shards were forgotten or purged, so they must not be counted; `reasons` names them.

    reasons : names of the shards, each with the reason
    """

    def __init__(self, reasons: tuple[tuple[str, str], ...]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    @property
    def urls(self) -> tuple[str, ...]:
        """Names of the shards."""
        return tuple(url for url, _ in self.reasons)

    def said(self, spell: Spell) -> str:
        return in_words(
            spell,
            said_of_forgotten(self.reasons),
            "leave these shards out, or count them by {update.include_forgotten}",
        )


def said_of_forgotten(reasons: Iterable[tuple[str, str]]) -> str:
    """Describe the first few forgotten shards, each with the reason.

    Examples
    --------
    >>> said_of_forgotten([("a.txt", "was forgotten")])
    'a.txt was forgotten'
    """
    several = list(reasons)
    more = f"; and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
    return "; ".join(f"{url} {why}" for url, why in several[:_SHOWN]) + more


def _merged(
    one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    names = sorted({*one, *other})
    return {name: tuple(sorted({*one.get(name, ()), *other.get(name, ())})) for name in names}


def _is_compared(url: str, mark: str) -> bool:
    """Whether a shard is compared with forgotten ones by content, not only by name."""
    return tells_content(mark) and not url.endswith(SEALED_NAME)


def _names_of(url: str) -> Iterator[str]:
    """Yield the names that forbid to count a shard if they are forgotten or purged.

    These are the names of the shard, of its file, and of the folders above it.
    """
    yield url
    if "#" in url:
        yield whole_of(url)
        if url.endswith(DOCUMENT):
            # also yield folders: an earlier version may have counted the folder as a single shard
            above = url.rpartition("/")[0]
            while above:
                yield f"{above}/"
                above = above.rpartition("/")[0]

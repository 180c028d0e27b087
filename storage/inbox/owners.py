"""Owners: the one store that counts the documents of an inbox.

Two stores on one inbox would count each other's documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.format import read_format
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.log.schema import Identity, checked

FORMAT_FILE = "inbox.json"
_ADOPTED = "adopted.json"  # file that names the first store that opened an inbox of version 0.2.0
_STORE = "store"


class InboxOfAnother(StoreError):
    """The inbox belongs to another store."""


@dataclass(frozen=True)
class Owner:
    """A store, as its inbox identifies it: its URL and the transaction of its first commit.

    A copy at another URL is another store, and so is a new store at the same URL.
    """

    url: str
    birth: Identity

    @classmethod
    def at(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> Owner:
        """Return the identity of the store at a URL; StoreError if the URL holds no store."""
        folder = Folder.at(url, storage_options)
        read_format(folder)
        first = commit_file(0)
        # the commit file of the first version keeps the transaction after the version has expired
        where = f"{folder.url}/{first}"
        birth = unseal(folder.read(first), where).get("transaction")
        return cls(folder.url, checked(_BIRTH, birth, f"{where} has no valid transaction"))


_BIRTH: TypeAdapter[str] = TypeAdapter(Identity)
_OWNER: TypeAdapter[Owner] = TypeAdapter(Owner)


def named(owner: Owner) -> dict[str, Any]:
    """Return the part of `inbox.json` that names the store."""
    return {_STORE: asdict(owner)}


def owner_of(folder: Folder) -> Owner | None:
    """Return the store that an inbox belongs to; None if no store has opened it yet."""
    return _owner_in(_content(folder), folder)


def require_owner(folder: Folder, owner: Owner) -> None:
    """Refuse a store that an inbox does not belong to; an inbox without an owner adopts the store.

    Raises InboxOfAnother, which names both stores.
    """
    found = owner_of(folder) or _adopted(folder, owner)
    if found == owner:
        return
    if found.url == owner.url:
        raise InboxOfAnother(
            f"the inbox {folder.url} belongs to an earlier store at {found.url}, which was "
            f"replaced by another one. {_ASSIGN}"
        )
    raise InboxOfAnother(
        f"the inbox {folder.url} belongs to the store {found.url}, not to {owner.url}: two stores "
        f"would count each other's documents. {_ASSIGN}"
    )


_ASSIGN = (
    'Give the service another inbox (inbox = "..."). If the store has moved here, stop all '
    "services of the earlier store and run `streaming-moments inbox assign SERVICE.toml`"
)


def assign(folder: Folder, owner: Owner) -> Owner | None:
    """Assign an inbox to a store from now on, and return its previous store.

    Services of the previous store refuse documents and stop counting once they check the inbox
    again.
    """
    content = _content(folder)
    before = _owner_in(content, folder)
    folder.write(FORMAT_FILE, seal({**content, **named(owner)}))
    folder.sync("")
    return before


def _adopted(folder: Folder, owner: Owner) -> Owner:
    """Return the first store that opened an inbox without an owner, and record it as the owner."""
    mine = seal(named(owner))
    first = create_once(folder, _ADOPTED, mine) or mine
    found = _owner_in(unseal(first, f"{folder.url}/{_ADOPTED}"), folder)
    assert found is not None
    content = _content(folder)
    if (said := _owner_in(content, folder)) is not None:
        return said  # another process assigned the inbox meanwhile
    folder.write(FORMAT_FILE, seal({**content, **named(found)}))
    folder.sync("")
    return found


def _content(folder: Folder) -> dict[str, Any]:
    return dict(unseal(folder.read(FORMAT_FILE), f"{folder.url}/{FORMAT_FILE}"))


def _owner_in(content: Mapping[str, Any], folder: Folder) -> Owner | None:
    said = content.get(_STORE)
    problem = f"{folder.url}/{FORMAT_FILE} does not name a valid store"
    return None if said is None else checked(_OWNER, said, problem)

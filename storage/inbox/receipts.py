"""Receipts: what a submission is known by, and that a key stands for one content alone."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, TypeAdapter

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.schema import Count, Digest, checked

_LONGEST_KEY = 255
_NOTHING = "0" * 64  # in place of a digest: no content has it
_FORM = re.compile(r"k[0-9a-f]{32}|b[0-9a-f]{32}-\d{1,19}")


def _receipt(text: str) -> str:
    if not _FORM.fullmatch(text):
        raise InvalidInput(f"{text[:60]!r} is no receipt; give one as it was answered")
    return text


ReceiptId = Annotated[str, AfterValidator(_receipt)]


def require_receipt(text: str) -> str:
    """Return a receipt; refuse a text of another form."""
    return _receipt(text)


def receipt_of_key(key: str, principal: str = "") -> str:
    """Return the receipt of an idempotency key, the same each time.

    `key` has 1 to 255 printable ASCII characters. Each principal (sender) has its own keys: the
    same key of another gives another receipt.

    Examples
    --------
    >>> receipt_of_key("order-7") == receipt_of_key("order-7"), len(receipt_of_key("order-7"))
    (True, 33)
    >>> receipt_of_key("order-7", "shop") == receipt_of_key("order-7")
    False
    """
    if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise InvalidInput(
            f"the key {key[:40]!r} has {len(key)} characters; give 1 to {_LONGEST_KEY} printable "
            "ones of ASCII, such as a UUID"
        )
    return "k" + hashlib.sha256(f"{principal}\0{key}".encode()).hexdigest()[:32]


def new_receipt(after: int) -> str:
    """Make a receipt for a submission without a key.

    `after` is the number of a seal that exists already.
    """
    return f"b{uuid.uuid4().hex}-{after}"


def seal_before(receipt: str) -> int | None:
    """Number of a seal before that of a receipt; None where its claim tells."""
    _, parted, after = receipt.partition("-")
    return int(after) if parted else None


@dataclass(frozen=True)
class Claim:
    """Binds a key to the SHA-256 of one content.

    `after` is the number of a seal that existed before.
    """

    digest: Digest
    after: Count

    @property
    def is_forgotten(self) -> bool:
        """Whether it tells nothing of what came under the key, and takes none of it again."""
        return self.digest == _NOTHING

    def forgotten(self) -> Claim:
        """The claim without the hash of what came."""
        return replace(self, digest=_NOTHING)

    def sealed(self) -> bytes:
        """File of it."""
        return seal({"digest": self.digest, "after": self.after})

    @classmethod
    def unsealed(cls, data: bytes, where: str) -> Claim:
        """Decode the claim in a file; a StoreError if it is damaged."""
        return checked(_CLAIM, unseal(data, where), f"{where} is no claim")


_CLAIM: TypeAdapter[Claim] = TypeAdapter(Claim)

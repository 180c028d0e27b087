"""Receipts: identities of submissions, and the idempotency keys that senders choose."""

from __future__ import annotations

import hashlib
import re
import uuid
from typing import Annotated

from pydantic import AfterValidator

from streaming_moments.errors import InvalidInput

LONGEST_KEY = 255  # an idempotency key has at most this many characters
KEY_FORM = "^[ -~]+$"  # such a key consists of printable characters of ASCII
_OF_KEY = "k[0-9a-f]{32}"
_WITHOUT_KEY = "b[0-9a-f]{32}-[0-9]{1,19}"
RECEIPT_FORM = f"^({_OF_KEY}|{_WITHOUT_KEY})$"


def _receipt(text: str) -> str:
    if not re.fullmatch(RECEIPT_FORM, text):
        raise InvalidInput(f"{text[:60]!r} is not a receipt; give one that the service returned")
    return text


ReceiptId = Annotated[str, AfterValidator(_receipt)]


def require_receipt(text: str) -> str:
    """Return a receipt unchanged; InvalidInput if the text does not have the form of one."""
    return _receipt(text)


def is_of_key(text: str) -> bool:
    """Whether a text is the receipt of an idempotency key.

    Examples
    --------
    >>> is_of_key(receipt_of_key("order-7")), is_of_key(new_receipt(0))
    (True, False)
    """
    return re.fullmatch(_OF_KEY, text) is not None


def new_receipt(after: int) -> str:
    """Make a receipt for a submission without an idempotency key.

    `after` is the number of an existing seal; the submission will be in a later one.
    """
    return f"b{uuid.uuid4().hex}-{after}"


def receipt_of_key(key: str, principal: str = "") -> str:
    """Return the receipt of an idempotency key; it depends only on the arguments.

    `key` has 1 to 255 printable ASCII characters. Each principal (sender) has its own keys: the
    same key of another principal gives another receipt.

    Examples
    --------
    >>> receipt_of_key("order-7") == receipt_of_key("order-7"), len(receipt_of_key("order-7"))
    (True, 33)
    >>> receipt_of_key("order-7", "shop") == receipt_of_key("order-7")
    False
    """
    if len(key) > LONGEST_KEY or not re.fullmatch(KEY_FORM, key):
        raise InvalidInput(
            f"the key {key[:40]!r} has {len(key)} characters; give 1 to {LONGEST_KEY} printable "
            "ASCII characters, such as a UUID"
        )
    return "k" + hashlib.sha256(f"{principal}\0{key}".encode()).hexdigest()[:32]


def seal_before(receipt: str) -> int | None:
    """Return the number of a seal that is earlier than the seal with the documents of a receipt.

    None if the receipt comes from an idempotency key; then `Claim.after` has the number.
    """
    _, parted, after = receipt.partition("-")
    return int(after) if parted else None

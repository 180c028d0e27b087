"""Receipts: what a submission is known by; those of keys are made in `idempotency`."""

from __future__ import annotations

import re
import uuid
from typing import Annotated

from pydantic import AfterValidator

from streaming_moments.errors import InvalidInput

_FORM = re.compile(r"k[0-9a-f]{32}|b[0-9a-f]{32}-\d{1,19}")


def _receipt(text: str) -> str:
    if not _FORM.fullmatch(text):
        raise InvalidInput(f"{text[:60]!r} is no receipt; give one as it was answered")
    return text


ReceiptId = Annotated[str, AfterValidator(_receipt)]


def require_receipt(text: str) -> str:
    """Return a receipt; refuse a text of another form."""
    return _receipt(text)


def new_receipt(after: int) -> str:
    """Make a receipt for a submission without a key.

    `after` is the number of a seal that exists already.
    """
    return f"b{uuid.uuid4().hex}-{after}"


def seal_before(receipt: str) -> int | None:
    """Number of a seal before that of a receipt; None where its claim tells."""
    _, parted, after = receipt.partition("-")
    return int(after) if parted else None

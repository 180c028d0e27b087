"""Sealed JSON: a JSON object that begins with the SHA-256 of the rest of its bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from streaming_moments.errors import StoreError

_HEAD = b'{"sha256": "'
_NECK = b'",\n'
_BODY = len(_HEAD) + 64 + len(_NECK)


def seal(content: Mapping[str, Any]) -> bytes:
    """Encode an object with at least one key as JSON that begins with its hash.

    Examples
    --------
    >>> unseal(seal({"version": 3}), "commit 3")
    {'version': 3}
    """
    body = json.dumps(content, allow_nan=False).encode()[1:]
    return _HEAD + hashlib.sha256(body).hexdigest().encode() + _NECK + body


def unseal(data: bytes, where: str) -> dict[str, Any]:
    """Decode a sealed object, without its hash.

    Raises StoreError if the bytes have changed since they were written.

    data : the whole file
    where : name of the file for the error
    """
    body = data[_BODY:]
    if data[:_BODY] != _HEAD + hashlib.sha256(body).hexdigest().encode() + _NECK:
        raise StoreError(
            f"{where} is damaged (its {len(data)} bytes do not match the SHA-256 at their start); "
            "restore it from a copy"
        )
    content = json_object(data, where)
    del content["sha256"]
    return content


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """Decode the object in a JSON file, sealed or not.

    Raises StoreError if the file does not hold an object, or if the object is nested more than 200
    levels deep or has a number that is not finite.
    """
    try:
        content = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise StoreError(
            f"{where} is damaged (not JSON: {error}); restore it from a copy"
        ) from error
    if not isinstance(content, dict):
        raise StoreError(f"{where} is damaged (not a JSON object); restore it from a copy")
    return content

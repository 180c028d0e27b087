"""Parameters: what the addresses and headers of calls take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming_moments.pipelines.service.http.asking import LARGEST


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call.

    Parameters
    ----------
    name : str
        As it is given.
    place : str
        "path", "query" or "header".
    says : str
        What it is.
    schema : mapping
        JSON Schema of its values.
    """

    name: str
    place: str
    says: str
    schema: Mapping[str, Any]


RECEIPT = Parameter(
    "receipt",
    "path",
    "as it was answered",
    {"type": "string", "pattern": r"^(k[0-9a-f]{32}|b[0-9a-f]{32}-[0-9]{1,19})$"},
)
_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
RECEIPTS = Parameter("receipt", "query", "receipts; or give ids", _TEXTS)
IDS = Parameter("id", "query", "ids of documents, as they were sent; or give receipts", _TEXTS)
DELETION = Parameter(
    "deletion", "path", "as it was answered", {"type": "string", "pattern": "^[0-9a-f]{32}$"}
)
KEY = Parameter(
    "Idempotency-Key",
    "header",
    "the same key again gets the same receipt and adds nothing; needed to send again safely",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
)
SKIP_BAD = Parameter(
    "skip_bad",
    "query",
    "leave out documents that are refused, and list them, in place of refusing all",
    {"type": "boolean", "default": False},
)
WORDS = Parameter(
    "words",
    "query",
    "words of each topic",
    {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
)
MODEL = Parameter(
    "model", "query", "name or tag of a model; by default that which answers", {"type": "string"}
)
BY = Parameter(
    "by",
    "query",
    "how long a period is",
    {"type": "string", "enum": ["day", "week", "month"], "default": "day"},
)
TOPIC = Parameter(
    "topic",
    "path",
    "number of a topic, state, cluster or factor",
    {"type": "integer", "minimum": 0},
)
VERSION_KEPT = Parameter(
    "version", "path", "a version that is kept", {"type": "integer", "minimum": 0}
)
VERSION = {"type": "integer", "minimum": 1, "maximum": LARGEST}
LIMIT = Parameter(
    "limit",
    "query",
    "how many of the latest",
    {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
)

"""Calls: each path of the service, with the role that it requires, its input and its answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.pipelines.service.http import (
    changing,
    choosing,
    pages,
    parts,
    reading,
    submitting,
)
from streaming_moments.pipelines.service.http.bodies import FORM, JSON
from streaming_moments.pipelines.service.http.request_params import LARGEST
from streaming_moments.pipelines.service.schemas import (
    Confirmed,
    DocumentSent,
    DocumentsToForget,
    Forgetting,
    LabelGiven,
    Models,
    Readiness,
    Receipt,
    ReturnConfirmed,
    Shares,
    SharesByOrigin,
    TextsToRead,
    TextTried,
    Transformed,
    Versions,
)
from streaming_moments.pipelines.service.tokens import Role
from streaming_moments.storage.inbox.receipts import KEY_FORM, LONGEST_KEY, RECEIPT_FORM
from streaming_moments.storage.log.schema import IDENTITY_FORM

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service

Handler = Callable[["Service", Request], Coroutine[Any, Any, Response]]
_NONE: Mapping[str, str] = MappingProxyType({})
METRICS = "/metrics"  # this call is for programs, but a page links to it


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call, as the OpenAPI document describes it.

    `place` is "path", "query" or "header"; `says` is its description; `schema` is the JSON Schema
    of values.
    """

    name: str
    place: str
    says: str
    schema: Mapping[str, Any]


RECEIPT = Parameter(
    "receipt",
    "path",
    "receipt, from the answer to the request that sent the documents",
    {"type": "string", "pattern": RECEIPT_FORM},
)
_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
RECEIPTS = Parameter("receipt", "query", "receipts of documents; or give ids", _TEXTS)
IDS = Parameter("id", "query", "ids of documents, as they were sent; or give receipts", _TEXTS)
DELETION = Parameter(
    "deletion",
    "path",
    "id of the deletion, from the answer to the request for it",
    {"type": "string", "pattern": IDENTITY_FORM},
)
KEY = Parameter(
    "Idempotency-Key",
    "header",
    "the same key again gets the same receipt and adds nothing; needed to send again safely",
    {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": KEY_FORM},
)
SKIP_BAD = Parameter(
    "skip_bad",
    "query",
    "leave out bad documents and list them, instead of refusing all",
    {"type": "boolean", "default": False},
)
WORDS = Parameter(
    "words",
    "query",
    "words of each topic",
    {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
)
MODEL = Parameter(
    "model",
    "query",
    "name or tag of a model; by default the model that answers",
    {"type": "string"},
)
BY = Parameter(
    "by",
    "query",
    "how long a period is",
    {"type": "string", "enum": ["day", "week", "month"], "default": "day"},
)
ORIGIN = Parameter(
    "origin",
    "query",
    "of a hub: documents of this origin alone; its own ones if empty",
    {"type": "string"},
)
TOPIC = Parameter(
    "topic",
    "path",
    "number of a topic, state, cluster or factor",
    {"type": "integer", "minimum": 0},
)
VERSION_KEPT = Parameter("version", "path", "a stored version", {"type": "integer", "minimum": 0})
VERSION = {"type": "integer", "minimum": 1, "maximum": LARGEST}
LIMIT = Parameter(
    "limit",
    "query",
    "number of latest items",
    {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
)


@dataclass(frozen=True)
class Call:
    """A method and a path of the service.

    role : lowest required role; None for anyone
    says : description
    status : status code of success
    gives : dataclass of `schemas` for JSON, or a content type
    takes : dataclass of `schemas` for the body
    several : whether the body is a list of `takes`, or has one of them in each line
    refusals : further status codes of errors; `problems.STATUSES` has those that all calls of a
        kind share
    encoding : content type of the body
    """

    method: str
    path: str
    role: Role | None
    says: str
    handler: Handler
    gives: Any
    status: int = 200
    takes: Any = None
    several: bool = False
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[int, ...] = ()
    encoding: str = JSON

    @property
    def of_programs(self) -> bool:
        """Whether the call is for programs, not for pages in a browser.

        Such a call refuses unknown parameters in the query; calls for pages ignore them.
        """
        return self.path.startswith("/v1/")

    @property
    def query(self) -> tuple[str, ...]:
        """Names of the parameters of the call that stand in the query."""
        return tuple(one.name for one in self.parameters if one.place == "query")

    @property
    def repeated(self) -> tuple[str, ...]:
        """Names of the parameters in the query that may be given several times."""
        of_lists = (one for one in self.parameters if one.schema.get("type") == "array")
        return tuple(one.name for one in of_lists if one.place == "query")


CALLS: tuple[Call, ...] = (
    Call(
        "POST",
        "/v1/documents",
        Role.WRITER,
        "Send documents. The receipt comes once they are safe on disk.",
        submitting.documents,
        Receipt,
        202,
        DocumentSent,
        True,
        (KEY, SKIP_BAD),
        (429, 507),
    ),
    Call(
        "DELETE",
        "/v1/documents",
        Role.ADMIN,
        "Delete documents by receipt or id: no later version counts them.",
        submitting.forget,
        Forgetting,
        202,
        parameters=(RECEIPTS, IDS),
        refusals=(422, 507),
    ),
    Call(
        "POST",
        "/v1/deletions",
        Role.ADMIN,
        "Delete more documents than a URL can list.",
        submitting.forget_several,
        Forgetting,
        202,
        takes=DocumentsToForget,
        refusals=(507,),
    ),
    Call(
        "GET",
        "/v1/deletions/{deletion}",
        Role.ADMIN,
        "The state of a deletion.",
        submitting.deletion,
        Forgetting,
        parameters=(DELETION,),
        refusals=(404, 422),
    ),
    Call(
        "GET",
        "/v1/receipts/{receipt}",
        Role.WRITER,
        "The state of sent documents.",
        submitting.receipt,
        Receipt,
        parameters=(RECEIPT,),
        refusals=(404, 422),
    ),
    Call(
        "POST",
        "/v1/transform",
        Role.READER,
        "Apply the published model: topics of texts, states or components of records.",
        reading.transform,
        Transformed,
        takes=TextsToRead,
        refusals=(404,),
    ),
    Call(
        "GET",
        "/v1/topics",
        Role.READER,
        "Topics of a model with their words, as `streaming-moments topics --json`.",
        reading.topics,
        dict[str, Any],
        parameters=(MODEL, WORDS),
        refusals=(404, 422),
    ),
    Call(
        "GET",
        "/v1/models",
        Role.READER,
        "The models of the store, and the published one.",
        reading.models,
        Models,
    ),
    Call(
        "GET",
        "/v1/status",
        Role.READER,
        "The store in numbers, as `streaming-moments status --json`, and pending documents.",
        reading.status,
        dict[str, Any],
    ),
    Call(
        "GET",
        "/v1/versions",
        Role.READER,
        "Commits of the store, the latest first.",
        reading.versions,
        Versions,
        parameters=(LIMIT,),
        refusals=(422,),
    ),
    Call(
        "GET",
        "/v1/shares",
        Role.READER,
        "Shares of topics in the documents of days, weeks or months.",
        reading.shares,
        Shares,
        parameters=(BY, MODEL, ORIGIN),
        refusals=(404, 422),
    ),
    Call(
        "GET",
        "/v1/shares/origins",
        Role.READER,
        "Shares of topics in the documents of each origin of a hub.",
        reading.origins,
        SharesByOrigin,
        parameters=(MODEL,),
        refusals=(404, 422),
    ),
    Call("GET", METRICS, Role.READER, "Metrics for Prometheus.", reading.metrics, "text/plain"),
    Call("GET", "/healthz", None, "Whether the process runs.", reading.alive, dict[str, Any]),
    Call(
        "GET",
        "/readyz",
        None,
        "Whether store, inbox and model are ready; status 503 if not.",
        reading.ready,
        Readiness,
    ),
    Call(
        "GET",
        "/v1/openapi.json",
        None,
        "The description of all calls for programs.",
        reading.described,
        dict[str, Any],
    ),
    Call("GET", "/docs", None, "This page.", pages.docs, "text/html"),
    Call("GET", "/", Role.READER, "Page of the topics.", pages.topics, "text/html"),
    Call(
        "GET",
        "/topics/{topic}",
        Role.READER,
        "Page of a topic, state, cluster or factor of the published model.",
        parts.part,
        "text/html",
        parameters=(TOPIC,),
        refusals=(404,),
    ),
    Call(
        "POST",
        "/topics/{topic}/label",
        Role.ADMIN,
        "Name a topic: the form of its page.",
        changing.labelled,
        "text/html",
        303,
        takes=LabelGiven,
        parameters=(TOPIC,),
        refusals=(403, 404),
        encoding=FORM,
    ),
    Call(
        "GET",
        "/time",
        Role.READER,
        "Page of the shares of topics over time.",
        parts.over_time,
        "text/html",
        parameters=(BY, ORIGIN),
        refusals=(404, 422),
    ),
    Call(
        "GET",
        "/choice",
        Role.READER,
        "Page of the comparison of numbers of topics.",
        choosing.choice_of_k,
        "text/html",
    ),
    Call(
        "POST",
        "/choice",
        Role.ADMIN,
        "Request a new comparison: the form of the page.",
        choosing.selection_asked,
        "text/html",
        303,
        takes=Confirmed,
        refusals=(403,),
        encoding=FORM,
    ),
    Call(
        "GET",
        "/versions",
        Role.READER,
        "Page of the versions, and of the difference between two.",
        pages.versions,
        "text/html",
        parameters=(
            Parameter("before", "query", "version", VERSION),
            Parameter("after", "query", "a later version", VERSION),
        ),
        refusals=(404, 422),
    ),
    Call(
        "GET",
        "/versions/{version}/rollback",
        Role.ADMIN,
        "Page that lists what a rollback would change.",
        changing.return_asked,
        "text/html",
        parameters=(VERSION_KEPT,),
        refusals=(404, 409),
    ),
    Call(
        "POST",
        "/versions/{version}/rollback",
        Role.ADMIN,
        "Roll back, as `streaming-moments rollback`: the form of that page.",
        changing.returned,
        "text/html",
        303,
        takes=ReturnConfirmed,
        parameters=(VERSION_KEPT,),
        refusals=(403, 404, 409),
        encoding=FORM,
    ),
    Call(
        "GET",
        "/health",
        Role.READER,
        "Page of the state of the service.",
        pages.health,
        "text/html",
    ),
    Call("GET", "/try", Role.READER, "Page to try the model on a text.", pages.asked, "text/html"),
    Call(
        "POST",
        "/try",
        Role.READER,
        "Page of the topics of a text.",
        pages.tried,
        "text/html",
        takes=TextTried,
        refusals=(404,),
        encoding=FORM,
    ),
)

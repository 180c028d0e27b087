"""Answers of calls, as JSON and in the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from streaming_moments.storage.inbox.rejected import LeftOut

State = Literal["accepted", "counted", "uncounted", "set_aside", "refused", "forgotten"]


@dataclass(frozen=True)
class Receipt:
    """State of documents that were sent.

    receipt : id of the receipt, to ask again
    state : "accepted": stored, and will be counted. "counted": the latest version counts them.
        "uncounted": an earlier version counted them, and a rollback removed them. "set_aside": the
        store cannot count their shard; the service tries again when an admin requests it, or when
        documents of the shard are deleted. "refused": not counted, for the given reason.
        "forgotten": all documents were deleted on request, and no later version counts them.
    documents : number of documents; None if this call does not look it up
    version : version of the store that counts the documents
    reason : why the documents are refused, set aside or uncounted
    left_out : documents that were not accepted, if the call allowed that
    empty : number of accepted documents without content, such as a text of spaces; they count as
        documents, and add no words. None if this call does not look up the number
    """

    receipt: str
    state: State
    documents: int | None = None
    version: int | None = None
    reason: str = ""
    left_out: tuple[LeftOut, ...] = ()
    empty: int | None = None


@dataclass(frozen=True)
class Forgetting:
    """State of a deletion.

    deletion : id of the deletion, to ask again
    state : "accepted": the service will do the deletion. "done": no later version counts the
        documents.
    documents : number of deleted documents; None until it is done
    version : first version of the store without the documents; None until then, or if no document
        was counted
    """

    deletion: str
    state: Literal["accepted", "done"]
    documents: int | None = None
    version: int | None = None


@dataclass(frozen=True)
class TextTopics:
    """Topics of a text.

    proportions : share of each topic, by its number; the shares add up to 1
    words, known : number of words of the text without stop words, and number of those in the
        vocabulary of the model
    foreign : whether fewer than a fifth of the words are known; the topics then mean little
    """

    proportions: tuple[float, ...]
    words: int
    known: int
    foreign: bool


@dataclass(frozen=True)
class Transformed:
    """Topics of texts.

    model : name of the model that answered
    version : version of the store at which the model was loaded
    texts : answers in the order of the texts
    """

    model: str
    version: int
    texts: tuple[TextTopics, ...]


@dataclass(frozen=True)
class DocumentsToForget:
    """Documents to delete, by their receipts or by their ids.

    receipts : receipts whose documents are deleted
    ids : ids of documents to delete, as they were sent; give one of the two lists
    """

    receipts: Annotated[list[str], Field(max_length=1000)] = field(default_factory=list)
    ids: Annotated[list[str | int], Field(max_length=1000)] = field(default_factory=list)
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class TextsToRead:
    """Texts in which to find topics.

    texts : texts; each is a document
    """

    texts: Annotated[list[str], Field(min_length=1)]
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class DocumentRead:
    """Answer of a model for a document that is not a text; a model gives some of these fields.

    proportions : shares of topics, states, components or communities; they add up to 1
    words, known : number of words or values, and number of those that the model contains
    foreign : whether fewer than a fifth of the words or values are known
    log_likelihood : log-likelihood of the known values, in nats
    factors : values of independent factors
    states : most likely sequence of states, one for each symbol
    probabilities : probability of each of these states, or of each completed value of a row
    completed : row with its missing values filled in
    memberships : memberships of both ends of an edge; null for an unknown node
    """

    proportions: tuple[float, ...] | None = None
    words: int | None = None
    known: int | None = None
    foreign: bool | None = None
    log_likelihood: float | None = None
    factors: tuple[float, ...] | None = None
    states: tuple[int, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    completed: dict[str, str] | None = None
    memberships: dict[str, tuple[float, ...] | None] | None = None


@dataclass(frozen=True)
class DocumentsRead:
    """Answers of a model for documents that are not texts.

    model : name of the model that answered
    version : version of the store at which the model was loaded
    documents : answers in the order of the documents
    """

    model: str
    version: int
    documents: tuple[DocumentRead, ...]


@dataclass(frozen=True)
class TextTried:
    """A text that was pasted into a page.

    text : the whole text
    """

    text: str


@dataclass(frozen=True)
class Confirmed:
    """Fields of the HTML form by which the user of a page confirms a change of the store.

    token : token in the page, which was made for the user who opened it
    """

    token: str


@dataclass(frozen=True)
class ReturnConfirmed(Confirmed):
    """Form that confirms a rollback, on the page that lists its changes.

    head : latest version when the page was made
    """

    head: str


@dataclass(frozen=True)
class LabelGiven(Confirmed):
    """Form that gives a label to a topic.

    label : up to 100 characters on one line; empty to remove the label
    """

    label: str = ""


@dataclass(frozen=True)
class DocumentSent:
    """A document for a store of texts.

    For other stores, the fields of a document are the columns that the store counts.

    text : the whole text
    id : names the document for a deletion by id, and for answers. It need not be unique, and a
        document with a repeated id is counted again. An Idempotency-Key makes a repeated request
        safe
    date : text that begins with a date, such as 2026-11-23; by default the day on which the
        document arrives
    """

    text: str
    id: str | int | None = None
    date: str | None = None


@dataclass(frozen=True)
class DocumentsToRead:
    """Documents to which the model is applied; their fields are those of documents to count.

    documents : documents to which to apply the model
    """

    documents: Annotated[list[DocumentSent], Field(min_length=1)]
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class ProblemDetails:
    """Answer to a call that fails (RFC 9457).

    type, title : "about:blank", and the meaning of the status
    status : status code of HTTP
    detail : what is wrong with this call, and the remedy
    request_id : id of the call in the log of the service
    field : affected field, parameter or header
    document : position of the affected document, from 0; missing if the error concerns no document
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    field: str = ""
    document: int | None = None


@dataclass(frozen=True)
class Models:
    """Models of the store.

    answering : name of the model that answers
    tags : for each tag, the name of its model
    models : names, the latest last, each with the version to which the model was fitted. If another
        store fitted the model, `fitted_by` is the URL of that store
    """

    answering: str | None
    tags: dict[str, str]
    models: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Versions:
    """Commits of the store.

    store : URL of the store
    versions : commits, the latest first: version, time, operation, documents, shards,
        message, and skipped shards
    """

    store: str
    versions: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Shares:
    """Shares of topics over time.

    model : name of the model
    by : "day", "week" or "month"
    origin : origin, such as a site, whose documents the shares describe; "" for documents that the
        store counted itself, null for all documents
    periods : periods, the earliest first: first and last day, tokens, shares of the topics,
        and their errors
    """

    model: str
    by: str
    periods: tuple[dict[str, Any], ...]
    origin: str | None = None


@dataclass(frozen=True)
class SharesByOrigin:
    """Shares of topics at each origin of a hub.

    model : name of the model
    origins : for each origin its name, tokens, shares of the topics, and errors of the shares. The
        first one, with an empty name, has the own documents of the hub
    """

    model: str
    origins: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Readiness:
    """State of the service for readiness probes.

    ready : whether all following values are true. But `model` may be false as long as the store has
        no model. `counting` becomes false only after a pause as long as the limit `inbox_age`.
    store, inbox, model : the store is readable, the inbox is readable and writable, a model is
        loaded
    counting : sealed documents are being counted; set-aside shards do not matter
    problems : names of problems. `store`, `inbox`, `seals`, `model`, `tokens` or `documents`: this
        part cannot be read or used. `counting`: documents are not counted. `owner`: the inbox
        belongs to another store. `storage`: no answer for a minute. The log has the reasons.
    """

    ready: bool
    store: bool
    inbox: bool
    model: bool
    counting: bool = True
    problems: tuple[str, ...] = ()

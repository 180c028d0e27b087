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
        store cannot count their shard; it tries again when an admin requests it, or when documents
        of the shard are deleted. "refused": not counted, for the given reason. "forgotten": all
        were deleted on request, and no later version counts them.
    documents : number of documents; None if it is not looked up
    version : version of the store that counts them
    reason : reason if they are refused, set aside or uncounted
    left_out : documents that were not accepted, if the call allowed that
    """
    version : first version of the store without them; None until then, or without any
        document
    """

    proportions : share of each topic, by its number; the shares add up to 1
    words, known : words of the text without stop words, and those in the vocabulary of the model
    foreign : whether fewer than a fifth are known; the topics then mean little
    """

    model : name of the model that answered
    version : version of the store at which the model was loaded
    texts : answers in the order of the texts
    """
    receipts : receipts whose documents are deleted
    ids : ids of documents to delete, as they were sent; give one of the two lists
    """
    """Texts to read.

    texts : texts; each is a document
    """
class DocumentRead:
    """Answer of a model for a document that is not a text; each model has some of these fields.

    proportions : shares of topics, states, components or communities; they add up to 1
    words, known : words or values, and those that the model contains
    foreign : whether fewer than a fifth are known
    log_likelihood : log-likelihood of the known values, in nats
    factors : values of independent factors
    states : most likely sequence of states, one for each symbol
    probabilities : probability of each of these states, or of each completed value of a row
    completed : row with its missing values filled in
    memberships : memberships of both ends of an edge; null for an unknown node
    """
    """
    """The form of a page that changes something.

    token : token from the page, made for the caller who asked for it
    """
    """Form of the page that lists the changes of a rollback.

    head : latest version when the page was made
    """
    label : up to 100 characters on one line; empty to remove the label
    """
    text : the whole text
    id : id of the document
    date : text that begins with a date, such as 2026-11-23; by default the day of
        arrival
    """
    """Documents to read with the model, in the form in which they would be sent.

    documents : documents to read
    """
class ProblemDetails:
    """Answer to a call that fails (RFC 9457).

    type, title : "about:blank", and the meaning of the status
    status : status code of HTTP
    detail : error of this call, and the remedy
    request_id : id of the call in the log of the service
    field : affected field, parameter or header
    document : position of the affected document, from 0
    """
    models : names, the latest last, each with the version it was fitted to, and `fitted_by`,
        the URL of the store that fitted it, if that is another one
    """
    store : URL of the store
    versions : commits, the latest first: version, time, operation, documents, shards,
        message, and skipped shards
    """

    model : name of the model
    by : "day", "week" or "month"
    origin : origin of a hub whose documents these are; "" for its own ones, null for
        all
    periods : periods, the earliest first: first and last day, tokens, shares of the topics,
        and their errors
    """

    model : name of the model
    origins : the own documents of the store first, with an empty name: origin, tokens, shares
        of the topics, and their errors
    """

    ready : whether all following values are true. A store without models needs no model, and
        counting may pause for `inbox_age`.
    store, inbox, model : the store is readable, the inbox is readable and writable, a model is
        loaded
    counting : sealed documents are being counted; set-aside shards do not matter
    problems : problems. `store`, `inbox`, `seals`, `model`, `tokens` or `documents` cannot be read
        or used. `counting`: documents are not counted. `owner`: the inbox belongs to another store.
        `storage`: no answer for a minute. The log has the reasons.
    """
"""Answers: what calls give, as JSON and in the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from streaming_moments.storage.inbox.rejected import LeftOut

State = Literal["accepted", "counted", "uncounted", "set_aside", "refused", "forgotten"]


@dataclass(frozen=True)
class Receipt:
    """What became of documents that were sent.

    Parameters
    ----------
    receipt : str
        By which to ask again.
    state : str
        "accepted": they are kept and will be counted. "counted": a version counts them, and so does
        the latest. "uncounted": a version counted them and the latest does not, as it went back to
        one before. "set_aside": their shard cannot be counted as the store is; it is counted again
        when an admin asks for it or documents of it are deleted. "refused": they are not counted,
        and the reason says why. "forgotten": all were taken out by request, and no version from
        then on counts them.
    documents : int or None
        How many; None where that is not looked up.
    version : int or None
        Of the store, that counts them.
    reason : str
        Why they are refused, set aside or uncounted.
    left_out : list
        Documents that were not taken, where the call allowed for it.
    """

    receipt: str
    state: State
    documents: int | None = None
    version: int | None = None
    reason: str = ""
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Forgetting:
    """What became of a deletion.

    Parameters
    ----------
    deletion : str
        By which to ask again.
    state : str
        "accepted": it will be done. "done": no later version counts the documents.
    documents : int or None
        How many they were; None until it is done.
    version : int or None
        Of the store, the first that counts them no more; None until then, or without any document.
    """

    deletion: str
    state: Literal["accepted", "done"]
    documents: int | None = None
    version: int | None = None


@dataclass(frozen=True)
class TextTopics:
    """The topics of a text.

    Parameters
    ----------
    proportions : list of float
        Of each topic, by its number; they sum to 1.
    words, known : int
        Words of the text without stop words, and those of them that the model knows.
    foreign : bool
        Whether fewer than a fifth are known: then the topics say little.
    """

    proportions: tuple[float, ...]
    words: int
    known: int
    foreign: bool


@dataclass(frozen=True)
class Transformed:
    """Topics of texts.

    Parameters
    ----------
    model : str
        Name of the model that answered.
    version : int
        Of the store at which it was loaded.
    texts : list
        In their order.
    """

    model: str
    version: int
    texts: tuple[TextTopics, ...]


@dataclass(frozen=True)
class DocumentsToForget:
    """Documents that are to be forgotten, by their receipts or by their ids.

    Parameters
    ----------
    receipts : list of str
        All documents of these.
    ids : list of str or int
        Documents of these ids, as they were sent; give one of the two lists.
    """

    receipts: Annotated[list[str], Field(max_length=1000)] = field(default_factory=list)
    ids: Annotated[list[str | int], Field(max_length=1000)] = field(default_factory=list)
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class TextsToRead:
    """Texts of which the topics are asked.

    Parameters
    ----------
    texts : list of str
        Each a document.
    """

    texts: Annotated[list[str], Field(min_length=1)]
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class DocumentRead:
    """What a model says of a document that is no text; of each model some of these.

    Parameters
    ----------
    proportions : list of float
        Of topics, states, components or communities; they sum to 1.
    words, known : int
        Words, or values, and those of them that the model knows.
    foreign : bool
        Whether fewer than a fifth are known.
    log_likelihood : float
        Of what is known, nats.
    factors : list of float
        Values of independent factors.
    states : list of int
        The likeliest states of a sequence together, one for each symbol.
    probabilities : list of float
        Of each of these states, or of each value of a row that was completed.
    completed : mapping
        A row with what is missing filled in.
    memberships : mapping
        Of both ends of an edge; null of a node that is not known.
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
    """What a model says of documents that are no texts.

    Parameters
    ----------
    model : str
        Name of the model that answered.
    version : int
        Of the store at which it was loaded.
    documents : list
        In their order.
    """

    model: str
    version: int
    documents: tuple[DocumentRead, ...]


@dataclass(frozen=True)
class TextTried:
    """A text that was pasted into a page.

    Parameters
    ----------
    text : str
        All of it.
    """

    text: str


@dataclass(frozen=True)
class Confirmed:
    """The form of a page that changes something.

    Parameters
    ----------
    token : str
        As the page has it: of whoever asked for it.
    """

    token: str


@dataclass(frozen=True)
class ReturnConfirmed(Confirmed):
    """The form of the page that names what a rollback changes.

    Parameters
    ----------
    token : str
        As of `Confirmed`.
    head : str
        The latest version there was then.
    """

    head: str


@dataclass(frozen=True)
class LabelGiven(Confirmed):
    """The form by which a topic gets a label.

    Parameters
    ----------
    token : str
        As of `Confirmed`.
    label : str
        Up to 100 characters on one line; empty to take it away.
    """

    label: str = ""


@dataclass(frozen=True)
class DocumentSent:
    """A document as it is sent to a store of texts; others have the columns that they count.

    Parameters
    ----------
    text : str
        All of it.
    id : str, int or None
        What it is known by.
    date : str or None
        Begins with a date, as 2026-11-23; by default the day on which it comes.
    """

    text: str
    id: str | int | None = None
    date: str | None = None


@dataclass(frozen=True)
class DocumentsToRead:
    """Documents of which it is asked what the model says of them, as they would be sent.

    Parameters
    ----------
    documents : list
        Each a document.
    """

    documents: Annotated[list[DocumentSent], Field(min_length=1)]
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class ProblemDetails:
    """What is answered where a call cannot be done (RFC 9457).

    Parameters
    ----------
    type, title : str
        "about:blank", and what the status says.
    status : int
        Of HTTP.
    detail : str
        What is wrong with this call, and what to do.
    request_id : str
        By which the log of the service knows the call.
    field : str
        Field, parameter or header that is meant.
    document : int
        Place of the document that is meant, from 0 on.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    field: str = ""
    document: int = 0


@dataclass(frozen=True)
class Models:
    """Models of the store.

    Parameters
    ----------
    answering : str or None
        That which answers.
    tags : mapping
        Models by tag.
    models : list
        Names, the latest last, each with the version it was fitted on, and what it is.
    """

    answering: str | None
    tags: dict[str, str]
    models: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Versions:
    """Commits of the store.

    Parameters
    ----------
    store : str
        URL.
    versions : list
        The latest first: version, time, operation, documents, shards, message, and what was
        skipped.
    """

    store: str
    versions: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Shares:
    """Shares of topics over time.

    Parameters
    ----------
    model : str
        Name.
    by : str
        "day", "week" or "month".
    periods : list
        The earliest first: first and last day, tokens, shares of the topics, their errors.
    """

    model: str
    by: str
    periods: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Readiness:
    """Whether the service can do what it is for.

    Parameters
    ----------
    ready : bool
        All that follows; without a model as long as the store has none, and without counting for
        as long as documents may wait (`inbox_age`).
    store, inbox, model : bool
        The store is read, the inbox is read and takes documents, a model is loaded.
    counting : bool
        What is sealed is counted; set-aside shards are not waited for.
    problems : list of str
        What is wrong: `store`, `inbox`, `seals`, `model`, `tokens` or `documents` cannot be read
        or used, `counting` where documents are not counted, `owner` where the inbox belongs to
        another store, `storage` where it has not answered for a minute; the log says why.
    """

    ready: bool
    store: bool
    inbox: bool
    model: bool
    counting: bool = True
    problems: tuple[str, ...] = ()

"""Calls that read the store and its models."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.reports.kinds.registry import status_as_json, status_of_any
from streaming_moments.pipelines.reports.model_pages.registry import model_view, shown_of
from streaming_moments.pipelines.reports.status import stale_as_json
from streaming_moments.pipelines.reports.tables import (
    as_json,
    log_lines,
    periods_as_json,
)
from streaming_moments.pipelines.service.gauges import CONTENT_TYPE
from streaming_moments.pipelines.service.http.bodies import json_in, require_json
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import (
    body_of,
    choice,
    json_answer,
    number,
)
from streaming_moments.pipelines.service.published import answering
from streaming_moments.pipelines.service.schemas import (
    DocumentsRead,
    DocumentsToRead,
    Models,
    Readiness,
    Shares,
    SharesByOrigin,
    TextsToRead,
    Transformed,
    Versions,
)
from streaming_moments.pipelines.service.state_view import COUNTING, INTAKE, TOKENS
from streaming_moments.storage.dates import PERIODS
from streaming_moments.storage.merging.origin_shares import only_of, shares_by_origin
from streaming_moments.storage.operations.lineages import store_counting
from streaming_moments.storage.operations.shares_over_time import shares_over_time
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service

# The storage counts as silent if it has not answered for this many seconds, and also for this many
# times the interval `refresh` of the configuration.
_SILENT, _SILENT_LOOKS = 60.0, 10


async def transform(service: Service, request: Request) -> Response:
    """Answer with what the published model finds in the sent documents, such as topics of texts."""
    published = service.view.published
    if published is None:
        raise Problem(404, "the store has no model; fit one by `streaming-moments refit`")
    limits = service.config.limits
    require_json(request.headers)
    content = await body_of(service, request)

    intake = service.current.intake

    def read() -> tuple[int, Any]:
        asked = json_in(content, limits.texts)
        if not intake.takes_texts:
            records = documents_asked(asked, limits.texts)
            today, shape = service.now().date(), intake.shape
            lines = [shape.line(one, place, today)[1] for place, one in enumerate(records)]
            told = tuple(published.read(b"".join(lines)))
            return len(records), DocumentsRead(published.name, published.version, told)
        texts = texts_in(asked, limits.texts, limits.document)
        rows = tuple(published.infer(texts))
        return len(texts), Transformed(published.name, published.version, rows)

    try:
        number, found = await run_in_threadpool(read)
    finally:
        service.budget.give(len(content))
    service.gauges.read(number)
    return json_answer(asdict(found, dict_factory=_known))


def _known(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an answer, but leave out fields of value None."""
    return {name: value for name, value in fields if value is not None}


def documents_asked(content: object, most: int) -> list[object]:
    """Return the documents of a body such as {"documents": [{...}]}.

    Raises a Problem 422 for another body, and 413 for too many documents.
    """
    keys = set(DocumentsToRead.__dataclass_fields__)
    if not isinstance(content, dict) or set(content) != keys:
        raise Problem(
            422, 'the body is not an object with only "documents"; send {"documents": [{...}]}'
        )
    documents = content["documents"]
    if not isinstance(documents, list) or not documents:
        raise Problem(
            422,
            'documents is not a list of at least one document; send {"documents": [{...}]}',
            "documents",
        )
    if len(documents) > most:
        raise Problem(
            413, f"there are {len(documents):,} documents; send at most {most:,}", "documents"
        )
    return documents


def texts_in(content: object, most: int, text_bytes: int) -> list[str]:
    """Return the texts of a body such as {"texts": ["..."]}.

    Raises a Problem 422 for another body, and 413 for too many or too long texts.
    """
    keys = set(TextsToRead.__dataclass_fields__)
    if not isinstance(content, dict) or set(content) != keys:
        raise Problem(422, 'the body is not an object with only "texts"; send {"texts": ["..."]}')
    texts = content["texts"]
    if not isinstance(texts, list) or not texts:
        raise Problem(
            422, 'texts is not a list of at least one text; send {"texts": ["..."]}', "texts"
        )
    if len(texts) > most:
        raise Problem(413, f"there are {len(texts):,} texts; send at most {most:,}", "texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise Problem(422, f"text {place} is not a string; send text in quotes", "texts", place)
        if len(text) > text_bytes:
            raise Problem(
                413, f"text {place} is above {text_bytes:,} characters; cut it", "texts", place
            )
    return texts


async def topics(service: Service, request: Request) -> Response:
    """Answer with the topics of a model."""
    words = number(request, "words", 10, 1000)
    store, name = service.view.store, called(service, request)

    def found() -> dict[str, Any]:
        model = store.load_any_model(name)
        view = model_view(store, model, words, labels=store.commit.models[name].labels)
        told = {"store": store.url, "model": name, **stale_as_json(staleness(store, name))}
        return {**told, **view.as_json, **view.scores}

    return json_answer(await run_in_threadpool(found))


async def models(service: Service, request: Request) -> Response:
    """Answer with the models of the store."""
    view = service.view
    listed = tuple(
        {
            "name": name,
            "version": one.version,
            **({} if one.source is None else {"fitted_by": one.source.url}),
        }
        for name, one in view.store.models.items()
    )
    name = None if view.published is None else view.published.name
    return json_answer(asdict(Models(name, dict(view.store.commit.tags), listed)))


async def status(service: Service, request: Request) -> Response:
    """Answer with figures about the store and its pending documents."""
    view = service.view

    told = await run_in_threadpool(facts_of, view.store)
    backlog = view.backlog
    waits = {"batches": backlog.batches, "documents": backlog.documents}
    waits |= {"bytes": backlog.nbytes, "seconds": round(backlog.age.total_seconds())}
    return json_answer({**told, "inbox": waits})


def facts_of(store: MomentStore) -> dict[str, Any]:
    """Return figures about the store as JSON."""
    return status_as_json(status_of_any(store))


async def versions(service: Service, request: Request) -> Response:
    """Answer with the commits of the store."""
    limit = number(request, "limit", 50, 1000)
    store = service.view.store

    def found() -> Versions:
        lines = log_lines(store, max(0, store.version - limit + 1))
        return Versions(store.url, tuple(as_json(line) for line in lines))

    return json_answer(asdict(await run_in_threadpool(found)))


async def shares(service: Service, request: Request) -> Response:
    """Answer with shares of topics over time."""
    by = choice(request, "by", PERIODS)
    store, name = service.view.store, called(service, request)
    origin = origin_of(service, request)

    def found() -> Shares:
        model = _with_topics(store, name)
        counted = store_counting(store, name, model)
        counted = counted if origin is None else only_of(counted, origin)
        periods = shares_over_time(counted, model, by)  # type: ignore[arg-type]
        return Shares(name, by, tuple(periods_as_json(periods)), origin)

    return json_answer(asdict(await run_in_threadpool(found)))


async def origins(service: Service, request: Request) -> Response:
    """Answer with shares of topics in the documents of each origin."""
    store, name = service.view.store, called(service, request)

    def found() -> SharesByOrigin:
        model = _with_topics(store, name)
        by_origin = shares_by_origin(store_counting(store, name, model), model)
        return SharesByOrigin(name, tuple(asdict(one) for one in by_origin))

    return json_answer(asdict(await run_in_threadpool(found)))


def _with_topics(store: MomentStore, name: str) -> Any:
    """Load a model; raise a Problem 422 if it has no topics."""
    model = store.load_any_model(name)
    if shown_of(model).periods is None:
        raise Problem(422, f"model {name} is of type {model.name}, which has no topics", "model")
    return model


def origin_of(service: Service, request: Request) -> str | None:
    """Return the origin that the query names, or None; raise a Problem 404 if it is unknown."""
    asked = request.query_params.get("origin")
    known = service.view.store.commit.origins
    if asked and asked not in known:
        told = ", ".join(known) or "no origins"
        raise Problem(404, f"there is no origin {asked[:100]!r}; the store has {told}", "origin")
    return asked


async def metrics(service: Service, request: Request) -> Response:
    """Answer with metrics for Prometheus."""
    silence = None if service.silence is None else service.silence()
    text = await run_in_threadpool(service.gauges.text, service.view, silence)
    return Response(text, headers={"Content-Type": CONTENT_TYPE})


async def alive(service: Service, request: Request) -> Response:
    """Answer that the process lives."""
    return json_answer({"alive": True})


async def ready(service: Service, request: Request) -> Response:
    """Answer whether the service can accept documents and answer calls."""
    view = service.view
    problems = view.problems
    store, model = "store" not in problems, view.published is not None
    # while the store has no model, the service is ready without one, because it accepts documents
    wanted = answering(view.store, service.config.tag) is not None
    inbox = not {"inbox", "seals", "owner"} & problems.keys()
    # give only the names of problems: their texts may contain URLs, and are for users who may ask
    # for the status
    told = sorted(problems)
    refresh = service.config.refresh.total_seconds()
    silent = service.current.silence > max(_SILENT, _SILENT_LOOKS * refresh)
    told += ["storage"] * silent
    asked = not {TOKENS, INTAKE} & problems.keys()
    late = view.counting.stalled() >= service.config.limits.inbox_age.total_seconds()
    counting = not late and COUNTING not in problems
    all_well = store and inbox and model >= wanted and asked and not silent and not late
    found = Readiness(all_well, store, inbox, model, counting, tuple(told))
    return json_answer(asdict(found), 200 if found.ready else 503)


async def described(service: Service, request: Request) -> Response:
    """Answer with the OpenAPI document."""
    return json_answer(request.app.state.described.of(service.current.intake)[0])


def called(service: Service, request: Request) -> str:
    """Return the name of the requested model; raise a Problem 404 if the store lacks it."""
    view = service.view
    asked = request.query_params.get("model")
    if asked is None and view.published is not None:
        return view.published.name
    try:
        return model_called(view.store.commit, asked)
    except StoreError as error:
        raise Problem(404, str(error), "model") from error

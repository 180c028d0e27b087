"""Calls that send and delete documents, and report their state."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.http.admission import (
    require_own_inbox,
    require_room,
    written_in_time,
)
from streaming_moments.pipelines.service.http.bodies import documents_in, json_in, require_json
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import (
    body_of,
    flag,
    json_answer,
    principal,
)
from streaming_moments.pipelines.service.schemas import Forgetting, Receipt
from streaming_moments.storage.inbox.batches import Submission
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.inbox.receipts import (
    new_receipt,
    receipt_of_key,
    require_receipt,
)
from streaming_moments.storage.inbox.records import RecordRefused, RecordShape
from streaming_moments.storage.inbox.rejected import LeftOut, note_left_out
from streaming_moments.storage.log.schema import IDENTITY_FORM

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service

_By = Literal["receipt", "id"]
_LISTS: Mapping[str, _By] = MappingProxyType({"ids": "id", "receipts": "receipt"})


async def documents(service: Service, request: Request) -> Response:
    """Accept documents; answer when they are on disk, so that even a power cut cannot lose them."""
    skip_bad = flag(request, "skip_bad")
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise Problem(422, "the header is sent twice; send one key", "Idempotency-Key")
    key = keys[0] if keys else None
    sealed = service.view.sealed
    try:
        receipt = (
            new_receipt(sealed) if key is None else receipt_of_key(key, principal(request).name)
        )
    except InvalidInput as error:
        raise Problem(422, str(error), "Idempotency-Key") from error
    require_room(service)
    limits = service.config.limits
    content = await body_of(service, request)
    written: asyncio.Future[str] | None = None
    try:
        kind = request.headers.get("content-type", "")

        def read() -> tuple[Submission, tuple[RecordRefused, ...], int]:
            several, empty = documents_in(content, kind, limits.documents), set[int]()
            today = service.now().date()
            shape = service.current.intake.shape
            noticed = _noticed(several, shape, empty)
            found, bad = shape.submission(noticed, receipt, key is not None, today, skip_bad)
            return found, bad, len(empty - {one.place for one in bad})

        # parse sent documents in threads of their own, so that slow calls for topics do not delay
        # them
        submission, bad, empty = await to_thread.run_sync(read, limiter=service.taking)
        written = asyncio.wrap_future(service.commits.submit(submission, sealed))
        await written_in_time(written, limits.seconds.total_seconds())
        left_out = tuple(LeftOut(one.place, one.field, one.reason, one.id) for one in bad)
        if left_out:
            # Note rejected documents only now, when the Idempotency-Key is claimed. If the key was
            # used before with other content, the claim fails and nothing is noted.
            folder = service.current.inbox.folder
            await run_in_threadpool(note_left_out, folder, receipt, left_out)
    finally:
        held = len(content)
        if written is None:
            service.budget.give(held)
        else:
            # the budget counts the body until it is written, even if the client stops waiting
            written.add_done_callback(lambda done: service.budget.give(held))
    service.gauges.accepted(submission.documents, len(submission.content))
    answer = Receipt(receipt, "accepted", submission.documents, left_out=left_out, empty=empty)
    return json_answer(asdict(answer), 202, {"Location": f"/v1/receipts/{receipt}"})


def _noticed(several: Iterable[object], shape: RecordShape, empty: set[int]) -> Iterator[object]:
    """Yield documents; add to `empty` the positions of documents without content."""
    for place, one in enumerate(several):
        if isinstance(one, Mapping) and not any(_holds(one.get(name)) for name in shape.required):
            empty.add(place)
        yield one


def _holds(value: object) -> bool:
    """Whether a field of a document has content; every number is content, also 0."""
    if isinstance(value, str):
        return not value.isspace() and value != ""
    return value is not None and value != []


async def receipt(service: Service, request: Request) -> Response:
    """Answer with the state of a receipt."""
    (asked,) = _receipts([request.path_params["receipt"]])
    found = await run_in_threadpool(service.tracker.find, asked, service.view.store)
    if found is None:
        raise Problem(404, f"receipt {asked} is unknown or has expired", "receipt")
    return json_answer(asdict(found))


async def forget(service: Service, request: Request) -> Response:
    """Accept a request to delete all documents of the given receipts, or with the given ids."""
    given = {by: request.query_params.getlist(by) for by in ("receipt", "id")}
    if bool(given["receipt"]) == bool(given["id"]):
        raise Problem(
            422, "give receipt=... or id=..., one or several times, but not both", "receipt"
        )
    by: _By = "receipt" if given["receipt"] else "id"
    return await _asked(service, by, given[by])


async def forget_several(service: Service, request: Request) -> Response:
    """Accept a deletion as `forget` does, but read the receipts or ids from the body."""
    require_json(request.headers)
    limits = service.config.limits
    content = await body_of(service, request)
    try:
        given = json_in(content, limits.documents)
    finally:
        service.budget.give(len(content))
    if not isinstance(given, dict) or len(given) != 1 or not given.keys() <= _LISTS.keys():
        raise Problem(422, 'send {"ids": [...]} or {"receipts": [...]}, and not both')
    [(field, names)] = given.items()
    if not isinstance(names, list) or not all(_is_name(name) for name in names):
        raise Problem(
            422,
            f"{field} is not a list of strings; send ids as they were sent, and receipts as they "
            "were returned",
            field,
        )
    return await _asked(service, _LISTS[field], list(map(str, names)))


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


async def _asked(service: Service, by: _By, given: Sequence[str]) -> Response:
    names = _receipts(given) if by == "receipt" else given
    try:
        deletion = Deletion(by, tuple(names))
    except InvalidInput as error:
        raise Problem(422, str(error), by) from error
    require_own_inbox(service)
    identity = await run_in_threadpool(service.deletions.ask, deletion)
    answer = Forgetting(identity, "accepted")
    return json_answer(asdict(answer), 202, {"Location": f"/v1/deletions/{identity}"})


async def deletion(service: Service, request: Request) -> Response:
    """Answer with the state of a deletion."""
    identity = request.path_params["deletion"]
    if not re.fullmatch(IDENTITY_FORM, identity):
        raise Problem(
            422,
            f"{identity[:40]!r} is not the id of a deletion; give the id in the answer to a "
            "deletion request",
            "deletion",
        )

    def found() -> Forgetting | None:
        waits = service.deletions.is_waiting(identity)
        done = service.deletions.done(identity)
        if done is not None:
            return Forgetting(identity, "done", done.documents, done.version)
        return Forgetting(identity, "accepted") if waits else None

    answer = await run_in_threadpool(found)
    if answer is None:
        raise Problem(404, f"there is no deletion {identity}", "deletion")
    return json_answer(asdict(answer))


def _receipts(texts: Sequence[str]) -> list[str]:
    try:
        return [require_receipt(text) for text in texts]
    except InvalidInput as error:
        raise Problem(422, str(error), "receipt") from error

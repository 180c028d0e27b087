"""Submitting: documents that come, and what became of them."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.answers import LeftOut, Receipt
from streaming_moments.pipelines.service.asking import flag, json_answer, principal
from streaming_moments.pipelines.service.bodies import documents_in, read_body
from streaming_moments.pipelines.service.problems import Problem
from streaming_moments.storage.inbox.batches import Submission
from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key, require_receipt
from streaming_moments.storage.inbox.records import RecordRefused

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service

_AGAIN = 5  # seconds


async def documents(service: Service, request: Request) -> Response:
    """Take documents, and answer once they outlast a power cut."""
    skip_bad = flag(request, "skip_bad")
    key = request.headers.get("idempotency-key")
    sealed = service.view.sealed
    try:
        receipt = (
            new_receipt(sealed) if key is None else receipt_of_key(key, principal(request).name)
        )
    except InvalidInput as error:
        raise Problem(422, str(error), "Idempotency-Key") from error
    require_room(service)
    limits = service.config.limits
    told = limits.body, limits.seconds.total_seconds(), service.budget
    content = await read_body(request.stream(), request.headers, *told)
    try:
        kind = request.headers.get("content-type", "")

        def read() -> tuple[Submission, tuple[RecordRefused, ...]]:
            several = documents_in(content, kind, limits.documents)
            today = service.now().date()
            return service.current.shape.submission(
                several, receipt, key is not None, today, skip_bad
            )

        submission, bad = await run_in_threadpool(read)
        await asyncio.wrap_future(service.commits.submit(submission, sealed))
    finally:
        service.budget.give(len(content))
    service.gauges.accepted(submission.documents, len(submission.content))
    left_out = tuple(LeftOut(one.place, one.field, one.reason) for one in bad)
    answer = Receipt(receipt, "accepted", submission.documents, left_out=left_out)
    return json_answer(asdict(answer), 202, {"Location": f"/v1/receipts/{receipt}"})


async def receipt(service: Service, request: Request) -> Response:
    """What became of a receipt."""
    asked = require_receipt(request.path_params["receipt"])
    found = await run_in_threadpool(service.tracker.find, asked, service.view.store)
    if found is None:
        raise Problem(404, f"nothing came under receipt {asked}", "receipt")
    return json_answer(asdict(found))


def require_room(service: Service) -> None:
    """Refuse documents while too much waits, or for too long.

    Raises
    ------
    Problem
        429, with when to come again.
    """
    limits, backlog = service.config.limits, service.view.backlog
    waits = backlog.nbytes + service.commits.held_bytes
    if waits >= limits.inbox:
        raise Problem(
            429,
            f"{waits:,} bytes wait to be counted, of {limits.inbox:,} at most; send again later",
            retry_after=_AGAIN,
        )
    if backlog.age >= limits.inbox_age:
        raise Problem(
            429,
            f"documents wait since {backlog.age.total_seconds():.0f} seconds to be counted; nobody "
            "seems to count them; send again later",
            retry_after=_AGAIN,
        )

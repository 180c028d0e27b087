"""Change the store when an admin sends a form from a page: roll it back, or label a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streaming_moments.pipelines.service.http.forms import form_token, own_form
from streaming_moments.pipelines.service.http.pages import page
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import named_number, principal
from streaming_moments.pipelines.service.ingest_worker.locking import locked
from streaming_moments.storage.operations.history import Difference, difference, rollback
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming_moments.pipelines.service.service import Service

# a rollback or a new label waits at most this long until the accumulator, which counts new
# documents, releases the lock of the store
_PATIENCE = timedelta(seconds=5)
_SHARDS = 50  # each list on the page of a rollback shows at most this many shards


@dataclass(frozen=True)
class Return:
    """What a rollback would change.

    version, head : the target version, and the latest one
    apart : difference from the latest version to the target
    models : models of the latest version that the target version lacks
    answering : whether the target version has any model
    tags : for each tag that would change, its model in the latest version and its model in the
        target; None if the tag does not exist there
    """

    version: int
    head: int
    apart: Difference
    models: tuple[str, ...]
    answering: bool
    tags: Mapping[str, tuple[str | None, str | None]]


async def return_asked(service: Service, request: Request) -> Response:
    """Show what a rollback to a version would change, on a page that asks for confirmation."""
    store, version = service.view.store, _kept_version(service, request)
    if version == store.version:
        raise Problem(409, f"version {version} is the latest; there is nothing to roll back")
    found = await run_in_threadpool(_return_to, store, version)
    path = request.url.path
    values = {"found": found, "shown": _SHARDS}
    token = form_token(service, request, path)
    title = f"Roll back to version {version}?"
    return page(service, request, "rollback.html", title, **values, token=token)


async def returned(service: Service, request: Request) -> Response:
    """Roll the store back to a version, as `streaming-moments rollback` does."""
    form = await own_form(service, request)
    version, said = _kept_version(service, request), form.get("head", "")
    by = f" by {principal(request).name}" if principal(request).name else ""

    def change(store: MomentStore) -> MomentStore:
        if said != str(store.version):
            raise Problem(
                409,
                f"the store now has version {store.version}, but the form was made for version "
                f"{said[:20]!r}; open the page again",
                "head",
            )
        return rollback(store, version, f"rollback to version {version}{by}")

    return await _changed(service, change, "../../versions")


async def labelled(service: Service, request: Request) -> Response:
    """Name a topic, state or cluster, as `streaming-moments label` does."""
    form = await own_form(service, request)
    topic, published = named_number(request, "topic"), service.view.published
    if published is None:
        raise Problem(404, "the store has no model; fit one by `streaming-moments refit`")
    text = form.get("label", "").strip()

    def change(store: MomentStore) -> MomentStore:
        return label(store, topic, text, published.name)

    return await _changed(service, change, f"../{topic}")


async def _changed(
    service: Service, change: Callable[[MomentStore], MomentStore], then: str
) -> Response:
    """Apply `change` to the latest version of the store while holding its lock, then redirect.

    `then` is the URL of a page that shows the result. It is relative to the URL of the form.
    """
    config = service.config

    def done() -> None:
        options = config.storage_options or None
        with locked(config, _PATIENCE) as journal:
            change(journal.fenced(MomentStore.open(config.store, storage_options=options)))
        service.current.look()

    await run_in_threadpool(done)
    return RedirectResponse(then, 303)


def _kept_version(service: Service, request: Request) -> int:
    store, version = service.view.store, named_number(request, "version")
    if not store.commit.keeps(version):
        raise Problem(404, f"the store has no version {version}", "version")
    return version


def _return_to(store: MomentStore, version: int) -> Return:
    now, then = store.commit, store.at(version).commit
    names = {**now.tags, **then.tags}
    moved = {name: (now.tags.get(name), then.tags.get(name)) for name in sorted(names)}
    return Return(
        version,
        store.version,
        difference(store, store.version, version),
        tuple(name for name in now.models if name not in then.models),
        bool(then.models),
        {name: both for name, both in moved.items() if both[0] != both[1]},
    )

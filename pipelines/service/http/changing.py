"""Changing: what pages let an admin do to the store, each by a form of this service's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streaming_moments.pipelines.service.accumulating.locking import locked
from streaming_moments.pipelines.service.http.asking import named_number, principal
from streaming_moments.pipelines.service.http.forms import form_token, own_form
from streaming_moments.pipelines.service.http.pages import page
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.operations.history import Difference, difference, rollback
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming_moments.pipelines.service.service import Service

_PATIENCE = timedelta(seconds=5)  # to wait for a turn that counts
_SHARDS = 50  # shown


@dataclass(frozen=True)
class Return:
    """What a rollback changes.

    version, head : the version to go back to, and the latest
    apart : from the latest version to that one
    models : those that did not exist then
    tags : the model of a tag now and then; None for none
    """

    version: int
    head: int
    apart: Difference
    models: tuple[str, ...]
    tags: Mapping[str, tuple[str | None, str | None]]


async def return_asked(service: Service, request: Request) -> Response:
    """What a rollback to a version would change, to be confirmed."""
    store, version = service.view.store, _kept_version(service, request)
    if version == store.version:
        raise Problem(409, f"version {version} is the latest; there is nothing to go back to")
    found = await run_in_threadpool(_return_to, store, version)
    path = request.url.path
    values = {"found": found, "shown": _SHARDS, "path": path}
    token = form_token(service, request, path)
    title = f"Back to version {version}?"
    return page(service, request, "rollback.html", title, **values, token=token)


async def returned(service: Service, request: Request) -> Response:
    """Make the store what it was at a version, as `streaming-moments rollback` does."""
    form = await own_form(service, request)
    version, said = _kept_version(service, request), form.get("head", "")
    by = f" by {principal(request).name}" if principal(request).name else ""

    def change(store: MomentStore) -> MomentStore:
        if said != str(store.version):
            raise Problem(
                409,
                f"the store has version {store.version}, and what was confirmed was of "
                f"{said[:20]!r}; look at it again",
                "head",
            )
        return rollback(store, version, f"rollback to version {version}{by}")

    return await _changed(service, change, "/versions")


async def labelled(service: Service, request: Request) -> Response:
    """Let a topic, state or cluster be called by a text, as `streaming-moments label` does."""
    form = await own_form(service, request)
    topic, published = named_number(request, "topic"), service.view.published
    if published is None:
        raise Problem(404, "the store has no model yet; fit one by `streaming-moments refit`")
    text = form.get("label", "").strip()

    def change(store: MomentStore) -> MomentStore:
        return label(store, topic, text, published.name)

    return await _changed(service, change, f"/topics/{topic}")


async def _changed(
    service: Service, change: Callable[[MomentStore], MomentStore], then: str
) -> Response:
    """Change the latest version under the lock, and lead to a page that shows it."""
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
        raise Problem(404, f"the store keeps no version {version}", "version")
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
        {name: both for name, both in moved.items() if both[0] != both[1]},
    )

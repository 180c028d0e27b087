import asyncio
import json
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
import requests
import structlog
from campaigns import few_row_blocks
from frozen import unpack_into

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit, with_coherence
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.http.app import create_app
from streaming_moments.pipelines.service.http.connections.serving import server_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.service import Service
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.model_changes import TagMove

HOSTILE = "<img src=x onerror=alert(7)>"
TODAY = datetime(2026, 11, 23, 12, tzinfo=UTC)


def new_store(place, listed, run):
    pilot = PilotOptions(vocabulary_size=120, core=120, max_topics=4, min_documents=2)
    with few_row_blocks():
        return create(str(place), listed, ShardFormat(), TokenPolicy(), pilot, run)


@pytest.fixture
def unfitted(shards, embedded, tmp_path):
    """A store that was created, and no more."""
    new_store(tmp_path / "new", list_shards([str(shards)]), Run(embedded))
    return tmp_path / "new"


@pytest.fixture(scope="session")
def fitted(shards, embedded, tmp_path_factory):
    """A store of six shards with a model that is published; to be copied, not changed."""
    place = tmp_path_factory.mktemp("service") / "store"
    listed, run = list_shards([str(shards)]), Run(embedded)
    store = new_store(place, listed, run)
    store = update(store, listed, run).store
    store.save_model("first", refit(store, 4, 0.3, run), tag=None)
    return place


@pytest.fixture
def place(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path / "store")
    return tmp_path


class Client:
    """Calls of a service on this machine."""

    def __init__(self, server, service, lines):
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.server, self.service, self.lines = server, service, lines
        self.session = requests.Session()

    def __call__(self, method, path, **how):
        return self.session.request(
            method, f"http://127.0.0.1:{self.port}{path}", timeout=60, **how
        )

    def send(self, documents, key=None, **how):
        headers = {} if key is None else {"Idempotency-Key": key}
        headers |= how.pop("headers", {})
        return self("POST", "/v1/documents", json=documents, headers=headers, **how)


@contextmanager
def running(content):
    """A service of a configuration, on a free port."""
    content = {"listen": {"port": 0}, "window": "5ms", **content}
    config = service_of(content, "service.toml")
    service = Service.of(config, lambda: TODAY, lambda line: None)
    lines = structlog.testing.LogCapture()
    log = structlog.wrap_logger(structlog.PrintLogger(), processors=[lines])
    server = server_of(create_app(service, log), config, lambda line: None)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield Client(server, service, lines.entries)
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def start():
    """Starts services of configurations."""
    return running


@pytest.fixture
def serve_at():
    """Starts services of a store anywhere."""

    def started(store, **content):
        return running({"store": str(store), **content})

    return started


@pytest.fixture
def serve(serve_at, place):
    """Starts services of a store."""
    return partial(serve_at, place / "store")


@pytest.fixture
def client(serve):
    with serve() as found:
        yield found


@pytest.fixture
def seen(watched):
    """Opens pages of services; nothing may go wrong in one or be asked of another host."""
    hosts = ["data:"]

    def opened(client, path, width=1280, scheme="light", **choices):
        page = watched.page(width, 900, scheme, **choices)
        hosts.append(f"http://127.0.0.1:{client.port}/")
        page.goto(f"{hosts[-1]}{path.removeprefix('/')}")
        return page

    yield opened
    watched.leave()
    assert [url for url in watched.asked if not url.startswith(tuple(hosts))] == []


@pytest.fixture
def visited(seen, client):
    """Opens a page of the service."""
    return partial(seen, client)


@pytest.fixture(scope="session")
def dated(shards, embedded, tmp_path_factory):
    """A store of three days, a version each, beside its shards, and a model that is published.

    The days are counted under one lock, as by a night.
    """
    place = tmp_path_factory.mktemp("dated")
    for number, path in enumerate(sorted(shards.iterdir())):
        day = f"2026-11-{1 + number // 2:02d}"
        shutil.copy(path, place / f"{day} {number} {HOSTILE}{''.join(path.suffixes)}")
    run = Run(embedded)
    listed = list_shards([f"{place}/2026*"])
    store = new_store(place / "store", listed, run)
    store = update(replace(store, fence=1), listed, run).store
    model = with_coherence(store, refit(store, 4, 0.3, run), run)
    store.save_model("three", model, tag=TagMove("published", None))
    return place


@pytest.fixture
def days(dated, tmp_path):
    """Folder of a copy of that store."""
    shutil.copytree(dated / "store", tmp_path / "store")
    return tmp_path


@pytest.fixture
def serve_days(serve_at, days):
    """Starts services of that copy."""
    return partial(serve_at, days / "store")


class Answer:
    """What the application answered a request in this process."""

    def __init__(self, messages):
        start, *parts = messages
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(one.get("body", b"") for one in parts)
        self.text = self.body.decode()

    def json(self):
        return json.loads(self.body)


class Caller:
    """Calls the application of a service in this process, without a socket or threads of its own.

    `chunks` are parts of a body, of which None stands for a client that goes away.
    """

    def __init__(self, service, runner):
        capture = structlog.testing.LogCapture()
        log = structlog.wrap_logger(structlog.PrintLogger(), processors=[capture])
        self.service, self.lines, self._runner = service, capture.entries, runner
        self.app = create_app(service, log)

    def __call__(self, method, path, chunks=(), **headers):
        path, _, query = path.partition("?")
        given = {"host": "localhost"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        gone = {"type": "http.disconnect"}
        coming = [
            gone if one is None else {"type": "http.request", "body": one, "more_body": True}
            for one in chunks
        ]
        coming.append({"type": "http.request", "body": b"", "more_body": False})
        sent = []

        async def receive():
            return coming.pop(0) if coming else gone

        async def send(message):
            sent.append(message)

        self._runner.run(self.app(scope, receive, send))
        return Answer(sent)

    def post(self, path, content, **headers):
        """Send JSON."""
        told = {"content_type": "application/json", **headers}
        return self("POST", path, [json.dumps(content).encode()], **told)


@contextmanager
def calling(content):
    """A service of a configuration, which is called in this process."""
    config = service_of({"window": "1ms", **content}, "service.toml")
    service = Service.of(config, lambda: TODAY, lambda line: None)
    with asyncio.Runner() as runner:
        try:
            yield Caller(service, runner)
        finally:
            service.close()


@pytest.fixture
def archived(tmp_path):
    """Folders of stores as 0.2.0 wrote them, which take no cluster to make."""

    def at(name):
        unpack_into(tmp_path / name, name)
        return tmp_path / name / "store"

    return at


@pytest.fixture
def call_store():
    """Calls services of stores."""

    def called(store, **content):
        return calling({"store": str(store), **content})

    return called


@pytest.fixture
def call_at(archived, call_store):
    """Calls services of such stores."""

    def called(name, **content):
        return call_store(archived(name), **content)

    return called


@pytest.fixture
def calling_store():
    """Calls the service of a store anywhere."""
    return lambda store, **content: calling({"store": str(store), **content})


@pytest.fixture
def caller(call_at):
    """Calls a service of a store of 240 documents of two days, with two models."""
    with call_at("night") as found:
        yield found


@pytest.fixture
def ours(archived):
    """An accumulator of a store, by a clock that is told; `told` are its lines."""
    content = {"store": str(archived("night")), "accumulate": {"seal_after": "10s"}}
    now, lines = [1000.0], []
    found = Accumulator.of(
        service_of(content, "service.toml"),
        Run("a cluster", progress="progress"),
        lines.append,
        lambda: now[0],
    )
    found.now, found.lines = now, lines
    return found


@pytest.fixture
def tokens(tmp_path):
    """A file of tokens, and a token of each role."""
    path = tmp_path / "tokens.json"
    return path, {role: add_token(path, role.name.lower(), role) for role in Role}

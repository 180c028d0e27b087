"""What is asked of archives of the service, of nights and of estimators."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime

import fsspec
import numpy as np
import requests
import structlog
from frozen import digest, place_of, plain, put, sums_of
from service_answers import due

from streaming_moments.models.states import states_of
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.nightly.history import read_history
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.http.app import create_app
from streaming_moments.pipelines.service.http.connections.serving import server_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.service import Service
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.store.store import MomentStore

TODAY = datetime(2026, 11, 23, 12, tzinfo=UTC)


def configured(name):
    """The service of an archive."""
    content = {"store": f"{place_of(name)}/store", "listen": {"port": 0}, "window": "5ms"}
    content |= {"accumulate": {"seal_after": "10ms"}}
    return service_of(content, "service.toml")


def accumulator_of(name, run):
    """What counts the inbox of an archive."""
    return Accumulator.of(configured(name), run, lambda line: None)


def counted(accumulator):
    """A turn, once what came is due."""
    return due(accumulator, failing=True)


class Calls:
    """Calls of a service that runs in a thread."""

    def __init__(self, url, current):
        self.url, self.current = url, current

    def send(self, documents, key=None):
        """The receipt of some documents, of which bad ones are left out."""
        headers = {} if key is None else {"Idempotency-Key": key}
        place = f"{self.url}/v1/documents"
        how = {"headers": headers, "params": {"skip_bad": "true"}, "timeout": 60}
        answer = requests.post(place, json=documents, **how)
        assert answer.status_code == 202, answer.text
        return answer.json()["receipt"]

    def forget(self, **what):
        """The deletion of a receipt or an id."""
        answer = requests.delete(f"{self.url}/v1/documents", params=what, timeout=60)
        assert answer.status_code == 202, answer.text
        return answer.json()["deletion"]

    def get(self, path):
        """What is answered, once the service has looked at its store."""
        self.current.look()
        answer = requests.get(f"{self.url}{path}", timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def served(name):
    """The service of an archive, on a free port."""
    config = configured(name)
    service = Service.of(config, lambda: TODAY, lambda line: None)
    log = structlog.wrap_logger(
        structlog.PrintLogger(), processors=[structlog.testing.LogCapture()]
    )
    server = server_of(create_app(service, log), config, lambda line: None)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Calls(f"http://127.0.0.1:{port}", service.current)
    finally:
        server.should_exit = True
        thread.join(60)


def states_in(calls, receipts, deletions):
    """What is answered of receipts and deletions."""
    return {
        "receipts": {one: calls.get(f"/v1/receipts/{own}") for one, own in receipts.items()},
        "deletions": {one: calls.get(f"/v1/deletions/{own}") for one, own in deletions.items()},
    }


def inbox_told(name, run, receipts, deletions, again):
    """What a service says of an inbox, before what waits in it is counted and after."""
    accumulator = accumulator_of(name, run)
    with served(name) as calls:
        told = {"before": states_in(calls, receipts, deletions)}
        # under a key that was used nothing comes twice
        assert calls.send(*again) == receipts["waiting"]
        turns = [counted(accumulator)]
        assert accumulator.look() is None
        told |= {"after": states_in(calls, receipts, deletions)}
        told["topics"] = len(calls.get("/v1/topics")["topics"])
    store = MomentStore.open(f"{place_of(name)}/store")
    assert store.verify() == []
    told["turn"] = plain({**asdict(turns[0]), "version": None})
    told["sums"] = sums_of(store)
    told["ledger"] = sorted(
        [one.url, one.fingerprint, one.documents, one.tokens] for one in store.ledger()
    )
    return told


def night_of(name, create, refit):
    """The night of an archive."""
    place = place_of(name)
    paths = {"store": f"{place}/store", "shards": f"{place}/shards/2026*"}
    content = {**paths, "output": f"{place}/reports", "create": create, "refit": refit}
    return config_of(content, "night.toml")


def history_told(name, night):
    """What is read of the reports of nights."""
    history = read_history(Folder.at(f"{place_of(name)}/reports"), Folder.at(night.store).url)
    nights = [
        {
            "outcome": one.outcome,
            "model": one.model,
            "published": one.published,
            "published before": one.published_before,
            "weights": one.weights,
            "origins": one.origins,
            "until": one.until,
            "state": asdict(one.state),
        }
        for one in history.nights
    ]
    return plain({"nights": nights, "unread": history.unread})


def third_night(name, night, run):
    """A night more: what it follows, and what it counts."""
    files = fsspec.filesystem("memory")
    for path in files.find(f"/frozen/{name}/third"):
        put(name, f"shards/{path.rpartition('/')[2]}", files.cat_file(path))
    report = nightly(night, run.cluster, lambda step: None)
    store = MomentStore.open(night.store)
    assert store.verify() == []
    return {
        "outcome": report.outcome,
        "sums": sums_of(store),
        "topics": states_of(store.load_any_model("published")).number,
        "reports": len([path for path in files.find(f"/frozen/{name}/reports") if is_night(path)]),
    }


def is_night(path):
    """Whether a file is the report of a night."""
    return re.search(r"/night-\w+\.json$", path) is not None


def numbers_of(estimator, rows):
    """What an estimator makes of rows, as lists of numbers."""
    how = next(one for one in ("transform", "predict") if hasattr(estimator, one))
    return how, np.asarray(getattr(estimator, how)(rows)).tolist()


def estimator_told(estimator, rows):
    """What is read of a fitted estimator."""
    how, numbers = numbers_of(estimator, rows)
    told = {"parameters": plain(estimator.get_params()), "by": how, "numbers": numbers}
    arrays = {
        name: digest(value)
        for name, value in sorted(vars(estimator).items())
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype != object
    }
    return {**told, "arrays": arrays, "class": type(estimator).__name__}

"""Commands as processes, and a request of the service: CPU seconds of the process."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from cases import data
from cases.timing import Timed, seconds_of_children

DOCUMENTS, FEW = 2_000, 200
TOPICS = "5"
REQUESTS = 50
_PATIENCE = 120.0
_POLL = 0.05


def run(*arguments: str, check: bool = True) -> int:
    """Run a command of the package; its error is shown where it fails."""
    command = [sys.executable, "-m", "streaming_moments", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    if check and ended.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {ended.returncode}: {ended.stderr}")
    return ended.returncode


def written(path: Path, texts: list[str]) -> str:
    """Write texts as JSON Lines."""
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


class InStore(Timed):
    """A store of 2,000 counted texts with a model of 5 topics, made once a commit."""

    timer = staticmethod(seconds_of_children)
    repeat = 2

    def setup_cache(self) -> str:
        place = Path.cwd()
        texts = data.texts(DOCUMENTS + FEW)
        store = str(place / "store")
        shard = written(place / "texts.jsonl", texts[:DOCUMENTS])
        written(place / "few.jsonl", texts[DOCUMENTS:])
        run("create", store, shard, "--max-topics", "8")
        run("update", store, shard)
        run("refit", store, "--topics", TOPICS)
        return str(place)

    def setup(self, place: str) -> None:
        self.place = Path(place)
        self.store, self.few = f"{place}/copy", f"{place}/few.jsonl"
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(f"{place}/store", self.store)


class Commands(InStore):
    """The start of commands, and jobs over 200 texts."""

    def time_help(self, place: str) -> None:
        run("--help")

    def time_log(self, place: str) -> None:
        run("log", self.store)

    def time_status(self, place: str) -> None:
        run("status", self.store)

    def time_update(self, place: str) -> None:
        run("update", self.store, self.few)

    def time_refit(self, place: str) -> None:
        run("refit", self.store, "--topics", TOPICS, "--name", "again")

    def time_transform(self, place: str) -> None:
        output = self.place / "shares"
        shutil.rmtree(output, ignore_errors=True)
        run("transform", self.store, self.few, "--output", str(output))


class Service(InStore):
    """Requests of a running server, by the clock of its process."""

    def setup(self, place: str) -> None:
        if run("serve", "--help", check=False):
            raise NotImplementedError("this commit has no service")
        super().setup(place)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = self.place / "service.toml"
        inbox = self.place / "inbox"
        shutil.rmtree(inbox, ignore_errors=True)
        listen = f'[listen]\nhost = "127.0.0.1"\nport = {self.port}\n'
        config.write_text(f'store = "{self.store}"\ninbox = "{inbox}"\n{listen}')
        command = [sys.executable, "-m", "streaming_moments", "serve", str(config)]
        self.log = (self.place / "server.log").open("w")
        self.server = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        body = json.dumps({"texts": data.texts(DOCUMENTS + FEW)[-1:]})
        headers = {"Content-Type": "application/json"}
        self.request = ("POST", "/v1/transform", body, headers)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self._await_answer()
        self.time_requests(place)

    def teardown(self, place: str) -> None:
        if hasattr(self, "server"):
            self.connection.close()
            self.server.terminate()
            self.server.wait(60)
            self.log.close()

    def timer(self) -> float:
        """CPU seconds of the server: Linux numbers the clock of a process by its id."""
        return time.clock_gettime((~self.server.pid << 3) | 2)

    def time_requests(self, place: str) -> None:
        """Fifty times the topics of one text: asv repeats `setup` before each call."""
        for _ in range(REQUESTS):
            self._ask()

    def _ask(self) -> None:
        self.connection.request(*self.request)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the service answered {answer.status}: {content!r}")

    def _await_answer(self) -> None:
        """Ask until the server answers by its model."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._ask()
            except (OSError, http.client.HTTPException, RuntimeError):
                self.connection.close()
                if time.monotonic() > end or self.server.poll() is not None:
                    raise
                time.sleep(_POLL)

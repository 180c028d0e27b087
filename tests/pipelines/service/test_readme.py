"""The examples of the page on the service, from top to bottom, by a server as a user starts it."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import chdir
from pathlib import Path

import pytest
import requests
from page_scripts import printed_by

from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.tokens import Role, add_token

PAGE = (Path(__file__).parents[3] / "docs" / "operation" / "service_details.md").read_text()
EXAMPLES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
LONGEST = 120  # seconds


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_answered(url, process):
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        try:
            return requests.get(url, timeout=10)
        except requests.ConnectionError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


@pytest.fixture
def folder(tmp_path, planted):
    """A folder with the sample that the examples begin with."""
    words = "the sea and a ship", "the law of the tax"
    texts = (f"{text} {words[place % 2]}" for place, text in enumerate(planted[:300]))
    lines = (json.dumps({"text": text}) for text in texts)
    (tmp_path / "sample.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_the_examples_run_from_top_to_bottom(folder):
    port = free_port()
    moved = [
        (language, text.replace("localhost:8080", f"127.0.0.1:{port}"))
        for language, text in EXAMPLES
    ]
    [begin, calls, token] = [text for language, text in moved if language == "sh"]
    made, start = begin.split("streaming-moments serve ")
    with chdir(folder):
        printed_by(made)
    config = folder / start.strip()
    # what the example says, on a port that is free here
    assert tomllib.loads(config.read_text()) == {"store": "store"}
    config.write_text(f"{config.read_text()}listen = {{ port = {port} }}\n")
    serving = subprocess.Popen(
        [sys.executable, "-m", "streaming_moments", "serve", config.name],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until_answered(f"http://127.0.0.1:{port}/healthz", serving)
        with chdir(folder):
            receipt, rest = printed_by(calls).split("}", 1)
        assert json.loads(receipt + "}")["state"] == "accepted"
        assert '"topics"' in rest or '"proportions"' in rest
        [client] = [text for language, text in moved if language == "py"]
        ran = subprocess.run(
            [sys.executable, "-c", client], capture_output=True, text=True, timeout=LONGEST
        )
        assert (ran.returncode, ran.stdout.strip()) in {(0, "accepted"), (0, "counted")}, ran.stderr
        # another content under a key is refused, and the client says why
        other = client.replace("the law of the tax", "another text")
        ran = subprocess.run(
            [sys.executable, "-c", other], capture_output=True, text=True, timeout=LONGEST
        )
        assert ran.returncode == 1
        assert re.search(r"RuntimeError: 422 The content is refused: .*key", ran.stderr), ran.stderr
        with chdir(folder):
            assert printed_by(token)[:3] == "sm_"
        page = requests.get(f"http://127.0.0.1:{port}/", timeout=60)
        assert (page.status_code, "<h1" in page.text) == (200, True)
    finally:
        serving.send_signal(signal.SIGTERM)
        told, _ = serving.communicate(timeout=LONGEST)
    assert serving.returncode == 0, told


def test_the_client_of_the_page_has_a_token(serve, place, capsys):
    [example] = [text for language, text in EXAMPLES if language == "py"]
    [line] = re.findall(r"`(session\.headers\[.*?)`", PAGE)
    made = add_token(place / "tokens.json", "me", Role.WRITER)
    with serve(tokens=str(place / "tokens.json")) as client:
        moved = example.replace("localhost:8080", f"127.0.0.1:{client.port}")
        begun, sent = moved.split("sent = ")
        exec(f"{begun}\n{line}\nsent = {sent}", {"token": made})
        assert capsys.readouterr().out == "accepted\n"
        with pytest.raises(RuntimeError, match="401 .*token"):
            exec(moved, {})


def test_no_two_examples_share_a_key():
    keys = re.findall(r"Idempotency-Key: ([\w-]+)|, \"(order-\d+)\"\)", PAGE)
    assert len(keys) == len({*keys}) >= 2


def test_the_configurations_of_the_page_are_some():
    [example] = [text for language, text in EXAMPLES if language == "toml"]
    assert service_of(tomllib.loads(example), "service.toml").store == "s3://corpus/store"

"""An endpoint of S3 that is silent: what is said of it, and when it is given up."""

import json
import logging
import re
import socket
import ssl
from threading import Thread

import pytest
from command_runs import exit_code_of
from s3_server import S3Server, with_bucket

from streaming_moments.errors import StoreError
from streaming_moments.storage.files import silence
from streaming_moments.storage.files.backends import remedy_of
from streaming_moments.storage.files.folders import Folder

KEYS = {"key": "testing-key", "secret": "testing-key"}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(silence, "SAID_AFTER", 0.1)
    monkeypatch.setattr(silence, "FIRST_ANSWER", 0.4)


@pytest.fixture
def closed():
    """A port at which nobody listens, while another socket holds it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.usefixtures("impatient")
def test_a_command_says_that_nobody_answers_and_gives_up(closed, monkeypatch, capsys):
    # the clients of a process are kept by their options
    url, options = f"http://127.0.0.1:{closed}", json.dumps(KEYS | {"default_block_size": closed})
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    command = ("status", "s3://bucket/store", "--storage-options", options)
    assert exit_code_of(*command) == 2
    told, error = capsys.readouterr().err.splitlines()
    # on a busy machine the line may come before the client has met the refusal
    met = r"( \(the connection is refused\))?"
    assert re.match(rf"no answer yet from {url}{met}; trying again, ", told)
    assert f"(no answer from {url} for 0 s (the connection is refused)); check the end" in error
    assert exit_code_of(*command, "--quiet") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.fixture
def plain():
    """The port of a server that answers each connection in http."""

    def answer():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = Thread(target=answer)
        answering.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        answering.join()


def test_an_endpoint_that_speaks_http_is_named_at_once(plain, monkeypatch):
    url = f"https://127.0.0.1:{plain}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(StoreError) as caught:
        Folder.at("s3://bucket", KEYS | {"default_block_size": plain}).read("a")
    assert f"({url} speaks http instead of https); begin the endpoint in" in str(caught.value)
    assert str(caught.value).endswith("the storage options with http://")


def test_a_refused_certificate_is_named_at_once():
    from botocore.exceptions import SSLError

    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_message = "self-signed certificate"
    watch = silence._Watch("https://s3", 5, 11.0)
    with pytest.raises(
        silence.UntrustedCertificate, match="of https://s3 is refused: self-signed certificate"
    ) as caught:
        watch.failed(SSLError(endpoint_url="https://s3", error=refused))
    assert "AWS_CA_BUNDLE" in remedy_of(caught.value)


@pytest.mark.usefixtures("impatient")
def test_an_endpoint_of_the_options_stays_hidden_and_their_retries_stay(closed, caplog):
    own = {"config_kwargs": {"retries": {"max_attempts": 1}}}
    folder = Folder.at("s3://bucket", KEYS | own | {"endpoint_url": f"http://127.0.0.1:{closed}"})
    with pytest.raises(StoreError, match="EndpointConnectionError") as caught:
        folder.read("a")
    assert str(closed) not in str(caught.value) + caplog.text


def test_an_endpoint_that_stops_is_asked_as_long_as_its_client_does(monkeypatch, caplog):
    monkeypatch.setattr(silence, "SAID_AFTER", 0.0)
    server = S3Server()
    server.start()
    options = with_bucket(*server.get_host_and_port(), "bucket")
    own = {"config_kwargs": {"retries": {"max_attempts": 2}}}
    folder = Folder.at("s3://bucket", {**options, **own})
    with caplog.at_level(logging.WARNING, silence.SILENCE):
        try:
            folder.write("a", b"sea")
            assert "any more" not in caplog.text
        finally:
            server.stop()
        with pytest.raises(StoreError, match="EndpointConnectionError|ConnectionClosed"):
            folder.read("a")
    assert "no answer any more from the endpoint in the storage options" in caplog.text
    assert "trying again, at most 3 times" in caplog.text


def test_only_the_first_answer_has_a_limit():
    watch = silence._Watch("s3", 5, 11.0, answered=True, since=-1e9)
    from botocore.exceptions import EndpointConnectionError

    refused = EndpointConnectionError(endpoint_url="http://s3")
    assert watch.failed(refused) is None
    watch.answered = False
    with pytest.raises(silence.NoAnswer):
        watch.failed(refused)
    assert watch.failed(None) is None

"""Where the service listens: by TLS, and to the pages of others only if these are named."""

import os
import signal
import subprocess
from contextlib import contextmanager

import pytest
import requests

from streaming_moments.pipelines.service.http.connections import serving
from streaming_moments.pipelines.service.ingest_worker import children
from streaming_moments.pipelines.service.tokens import Role, add_token

ORIGIN = "https://pages.example"
MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem"
)


def test_a_certificate_makes_it_https(serve, place):
    made = subprocess.run(
        MAKE_CERTIFICATE.split(),
        cwd=place,
        capture_output=True,
        timeout=60,
    )
    if made.returncode:
        pytest.skip("openssl is not installed: apt-get install openssl")
    files = {name: str(place / f"{name}.pem") for name in ("certificate", "key")}
    with serve(listen={"port": 0, "host": "localhost", **files}) as client:
        url = f"https://localhost:{client.port}/v1/status"
        assert requests.get(url, verify=files["certificate"], timeout=30).status_code == 200
        with pytest.raises(requests.ConnectionError):
            client("GET", "/v1/status")


def test_pages_of_others_may_ask_only_if_they_are_named(serve, place):
    token = add_token(place / "tokens.json", "me", Role.ADMIN)
    told = {"tokens": str(place / "tokens.json"), "listen": {"port": 0, "origins": [ORIGIN]}}
    with serve(**told) as client:
        asked = {"Access-Control-Request-Method": "POST", "Origin": ORIGIN}
        answer = client("OPTIONS", "/v1/transform", headers=asked)
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        other = client("OPTIONS", "/v1/transform", headers={**asked, "Origin": "https://evil"})
        assert "Access-Control-Allow-Origin" not in other.headers
        named = {"Origin": ORIGIN, "Authorization": f"Bearer {token}"}
        answer = client("GET", "/v1/status", headers=named)
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, ORIGIN)
    with serve(tokens=told["tokens"]) as client:
        assert client("OPTIONS", "/v1/transform", headers=asked).status_code == 405


class NotServing:
    """In place of a server that has not begun to listen."""

    should_exit, ran = False, None

    def run(self):
        self.ran = self.should_exit


def test_a_night_that_is_none_is_told_before_anything_is_taken(place, run):
    (place / "night.toml").write_text(f'store = "{place}/store"\n')
    (place / "service.toml").write_text(
        f'store = "{place}/store"\n'
        f'[accumulate]\nnight = "{place}/night.toml"\nrefit_every = "24h"\n'
    )
    code, _, told = run("serve", place / "service.toml")
    assert (code, "night.toml: the top level lacks" in told) == (2, True)
    assert not (place / "store-inbox").exists()


def test_who_is_told_to_end_before_it_listens_ends(place, run, monkeypatch):
    server = NotServing()

    @contextmanager
    def killed(arguments, tell, heard, patience):
        os.kill(os.getpid(), signal.SIGTERM)
        yield

    monkeypatch.setattr(serving, "server_of", lambda app, config, tell: server)
    monkeypatch.setattr(children, "kept_running", killed)
    (place / "service.toml").write_text(f'store = "{place}/store"\nlisten = {{ port = 0 }}\n')
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert run("serve", place / "service.toml")[0] == 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert server.ran is True

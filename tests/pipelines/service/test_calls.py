"""The calls, of a real server on a real socket."""

import contextlib
import errno
import gzip
import http.client
import io
import json
import os
import select
import socket
import threading
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import jsonschema
import openapi_spec_validator
import pytest
import requests
from campaigns import Campaigns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.http import pages, problems, reading
from streaming_moments.pipelines.service.http.connections import serving
from streaming_moments.pipelines.service.published import Published
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.storage.files import local_files
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.store.model_changes import TagMove
from streaming_moments.storage.store.store import MomentStore

TODAY = datetime(2026, 11, 23, tzinfo=UTC)
BODIES = Campaigns.asked_for().size(150, 10_000)
NDJSON = {"Content-Type": "application/x-ndjson"}


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == problems.CONTENT_TYPE
    content = answer.json()
    assert content["status"] == status
    assert content["request_id"] == answer.headers["X-Request-ID"]
    return content


def waiting(client):
    """Texts that wait in the inbox."""
    inbox = client.service.current.inbox
    return sorted(
        json.loads(line)["text"]
        for batch in inbox.pending()
        for one in inbox.read(batch.name)
        for line in one.content.splitlines()
    )


def test_documents_are_durable_when_they_are_acknowledged(client):
    answer = client.send([{"text": "the sea", "id": 1}, {"text": "the law", "date": "2026-11-20"}])
    assert answer.status_code == 202
    receipt = answer.json()
    assert (receipt["state"], receipt["documents"], receipt["left_out"]) == ("accepted", 2, [])
    assert waiting(client) == ["the law", "the sea"]
    assert client("GET", answer.headers["Location"]).json()["state"] == "accepted"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_lines_and_gzip_are_the_same_documents(client):
    lines = b'{"text": "a"}\n\n{"text": "b"}'
    assert client("POST", "/v1/documents", data=lines, headers=NDJSON).json()["documents"] == 2
    packed = {**NDJSON, "Content-Encoding": "gzip"}
    sent = client("POST", "/v1/documents", data=gzip.compress(lines), headers=packed)
    assert sent.json()["documents"] == 2
    assert waiting(client) == ["a", "a", "b", "b"]


def test_the_same_key_is_the_same_receipt_also_of_another_instance(serve):
    with serve() as one, serve() as two:
        first = one.send([{"text": "a"}], "k").json()["receipt"]
        assert two.send([{"text": "a"}], "k").json()["receipt"] == first
        assert problem(two.send([{"text": "b"}], "k"), 422)["field"] == "Idempotency-Key"
        assert two("GET", f"/v1/receipts/{first}").json()["state"] == "accepted"
        assert problem(one.send([{"text": "a"}], "k" * 256), 422)["field"] == "Idempotency-Key"
    with serve() as again:
        assert again.send([{"text": "a"}], "k").json()["receipt"] == first
        seals = again.service.current.seals
        assert seals.seal_next().documents == 1
        assert again("GET", f"/v1/receipts/{first}").json()["documents"] == 1


def test_a_bad_document_refuses_all_with_its_place_or_is_listed(client):
    documents = [{"text": "a"}, {"txt": "b"}, {"text": "c"}]
    told = problem(client.send(documents), 422)
    assert (told["document"], told["field"]) == (1, "txt")
    assert "did you mean 'text'" in told["detail"]
    assert waiting(client) == []
    receipt = client.send(documents, params={"skip_bad": "true"}).json()
    assert [one["document"] for one in receipt["left_out"]] == [1]
    assert waiting(client) == ["a", "c"]
    told = client("GET", f"/v1/receipts/{receipt['receipt']}").json()
    assert told == {**receipt, "documents": None, "empty": None}
    lines = b'{"text": "d"}\n{"text": \n'
    told = client("POST", "/v1/documents?skip_bad=1", data=lines, headers=NDJSON).json()
    assert "not JSON" in told["left_out"][0]["reason"]
    assert problem(client.send([], params={"skip_bad": "maybe"}), 422)["field"] == "skip_bad"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {}, 422),
        (b"[", {}, 400),
        (b"[]", {}, 422),
        (b"[" * 100_000, {}, 400),
        (b"x", {"Content-Type": "text/plain"}, 415),
        (b"x", {"Content-Encoding": "br"}, 415),
        (b"x", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"[{}]", mtime=0)[:-3], {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"[{}]", mtime=0) + b"more", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(bytes(1 << 22), mtime=0), {"Content-Encoding": "gzip"}, 413),
        (bytes(1 << 21), {}, 413),
        (json.dumps([{"text": "a"}] * 101).encode(), {}, 413),
        (b'[{"text": "\\ud800"}]', {}, 400),
        # many times larger in memory than they came
        (b"[" + b"[]," * 200_000 + b"[]]", {}, 413),
        (b"[" + b"{}," * 200_000 + b"{}]", NDJSON, 413),
    ],
)
def test_what_cannot_be_read_is_refused(serve, body, headers, status):
    with serve(limits={"body": "1MB", "documents": 100}) as client:
        told = {"Content-Type": "application/json", **headers}
        problem(client("POST", "/v1/documents", data=body, headers=told), status)
        assert waiting(client) == []


def test_a_document_that_cannot_be_counted_spoils_nothing_of_others(serve, planted):
    """With so many words its triples pass 2^62, though it is of an allowed size."""
    text = f"{planted[0]} "
    long = text * (7_000_000 // len(text))
    with serve(limits={"document": "8MiB"}) as client:
        told = problem(client.send([{"text": text}, {"text": long}]), 422)
        assert (told["document"], told["field"]) == (1, "text")
        assert "above 2^62" in told["detail"]
        assert client.send([{"text": long[:100_000]}]).status_code == 202


def test_brackets_in_texts_are_texts(serve):
    text = '[{\\"' * 110_000
    with serve(limits={"documents": 10}) as client:
        assert client.send([{"text": text}, {"text": "\\"}]).status_code == 202
        assert waiting(client) == sorted([text, "\\"])


def test_too_much_that_waits_is_refused_with_when_to_come_again(serve):
    with serve(limits={"inbox": "1kB"}, refresh="20ms") as client:
        assert client.send([{"text": "a" * 2000}]).status_code == 202
        client.service.current.look()
        answer = client.send([{"text": "b"}])
        assert "bytes of documents are pending" in problem(answer, 429)["detail"]
        assert int(answer.headers["Retry-After"]) > 0
        client.service.current.seals.seal_next()
        client.service.current.look()
        assert client.send([{"text": "b"}]).status_code == 202


@pytest.mark.parametrize(
    ("error", "status"), [(OSError(errno.ENOSPC, "full"), 507), (OSError("503 SlowDown"), 503)]
)
def test_a_storage_that_fails_takes_nothing_and_says_when_to_come_again(
    client, monkeypatch, error, status
):
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
    with monkeypatch.context() as patch:

        def failing(path, content):
            raise error

        patch.setattr(local_files, "create_whole", failing)
        answer = client.send([{"text": "a"}])
        problem(answer, status)
        assert int(answer.headers["Retry-After"]) > 0
    assert waiting(client) == []
    assert client.send([{"text": "a"}]).status_code == 202
    assert waiting(client) == ["a"]


def test_topics_of_texts_by_the_published_model(client, planted):
    answer = client("POST", "/v1/transform", json={"texts": [planted[0], "Meer und Schiff", ""]})
    content = answer.json()
    assert (content["model"], len(content["texts"])) == ("first", 3)
    known, foreign, empty = content["texts"]
    assert sum(known["proportions"]) == pytest.approx(1, abs=1e-4)
    assert (known["foreign"], foreign["foreign"], foreign["known"]) == (False, True, 0)
    assert empty["words"] == 0
    for body, field in (({}, None), ({"texts": "a"}, "texts"), ({"texts": [1]}, "texts")):
        assert problem(client("POST", "/v1/transform", json=body), 422).get("field") == field


def test_a_model_that_is_published_meanwhile_answers_from_then_on(serve, place):
    with serve(refresh="10s") as client:
        store = MomentStore.open(str(place / "store"))
        store.save_model("second", store.load_model("first"), tag=TagMove("published", None))
        assert client("GET", "/v1/models").json()["answering"] == "first"
        client.service.current.look()
        assert client("GET", "/v1/models").json()["answering"] == "second"
        assert client("POST", "/v1/transform", json={"texts": ["a"]}).json()["model"] == "second"


def test_a_model_that_could_not_be_loaded_is_tried_again(serve, place, monkeypatch):
    def failing(store, tag):
        raise StoreError("the storage is away")

    with serve(refresh="1h") as client:
        store = MomentStore.open(str(place / "store"))
        store.save_model("second", store.load_model("first"), tag=TagMove("published", None))
        with monkeypatch.context() as patch:
            patch.setattr(Published, "of", failing)
            assert client.service.current.look().problems["model"] == "the storage is away"
        assert client("GET", "/v1/models").json()["answering"] == "first"
        assert not client.service.current.look().problems
        assert client("GET", "/v1/models").json()["answering"] == "second"


def test_a_fault_is_told_with_its_place_and_without_what_it_says(client, monkeypatch):
    monkeypatch.setattr(reading, "facts_of", lambda store: {}["planted-secret-text"])
    told = problem(client("GET", "/v1/status"), 500)
    (line,) = [line for line in client.lines if line["event"] == "fault"]
    assert (line["error"], line["request_id"]) == ("KeyError", told["request_id"])
    assert "test_calls.py" in line["at"][-1]
    assert "planted" not in repr(client.lines) + repr(told)


def test_no_request_is_dropped_while_models_are_published(serve, place, planted):
    over, found = threading.Event(), []

    def ask():
        session = requests.Session()
        while not over.is_set():
            answer = session.post(
                f"http://127.0.0.1:{client.port}/v1/transform",
                json={"texts": [planted[len(found) % 50]]},
                timeout=60,
            )
            found.append((answer.status_code, answer.json()["model"]))

    with serve(refresh="20ms") as client:
        store = MomentStore.open(str(place / "store"))
        asking = [threading.Thread(target=ask) for _ in range(2)]
        for one in asking:
            one.start()
        model = store.load_model("first")
        for number in range(3):
            before = store.commit.tags.get("published")
            store = store.save_model(f"m{number}", model, tag=TagMove("published", before))
            deadline = time.monotonic() + 60
            while client.service.view.published.name != f"m{number}":
                assert time.monotonic() < deadline
                time.sleep(0.01)
        over.set()
        for one in asking:
            one.join()
    assert {status for status, _ in found} == {200}
    assert {model for _, model in found} <= {"first", "m0", "m1", "m2"}


def test_what_the_store_holds_is_answered_as_the_commands_say_it(client, run, place):
    assert client("GET", "/v1/topics?words=3").json()["topics"][0]["words"]
    code, out, _ = run("topics", place / "store", "--json", "--words", "3")
    told = client("GET", "/v1/topics?words=3").json()
    assert code == 0
    assert {key: value for key, value in json.loads(out).items() if key in told} == {
        key: value for key, value in told.items() if key in json.loads(out)
    }
    status = client("GET", "/v1/status").json()
    assert status["documents"] == 900
    assert status["inbox"] == {"batches": 0, "documents": 0, "bytes": 0, "seconds": 0}
    versions = client("GET", "/v1/versions?limit=2").json()["versions"]
    assert [one["version"] for one in versions] == [2, 1]
    problem(client("GET", "/v1/versions?limit=0"), 422)
    assert "dates" in problem(client("GET", "/v1/shares"), 422)["detail"]
    assert problem(client("GET", "/v1/shares?by=year"), 422)["field"] == "by"
    problem(client("GET", "/v1/topics?model=none"), 404)
    assert client("GET", "/metrics").text.count("streaming_moments_service_calls_total{")


def test_health_and_readiness(client):
    assert client("GET", "/healthz").json() == {"alive": True}
    assert client("GET", "/readyz").json()["ready"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_who_cannot_write_into_the_inbox_is_not_ready(client, monkeypatch, number):
    class Refusing(io.FileIO):
        """Of a disk that still creates empty files, as a full one does."""

        def write(self, content):
            raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(local_files, "open", lambda *how, **more: Refusing(*how), raising=False)
        client.service.current.look()
        told = client("GET", "/readyz")
        assert (told.status_code, told.json()["problems"]) == (503, ["counting", "inbox"])
        page = client("GET", "/health").text
        assert "It accepts no documents." in page
        assert ("free some space" in page) == (number == errno.ENOSPC)
    client.service.current.look()
    assert client("GET", "/readyz").json()["ready"]


def test_a_new_store_is_ready_without_a_model_and_one_whose_model_is_damaged_is_not(
    place, serve, start, unfitted
):
    with start({"store": str(unfitted)}) as client:
        told = client("GET", "/readyz")
        assert (told.status_code, told.json()["model"]) == (200, False)
        assert client.send([{"text": "the sea"}]).status_code == 202
    for path in (place / "store" / "models").rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            path.write_bytes(b"?" * path.stat().st_size)
    with serve() as client:
        told = client("GET", "/readyz")
        assert (told.status_code, told.json()["problems"]) == (503, ["model"])


def test_health_and_metrics_tell_since_when_what_accumulates_was_not_heard(client):
    assert "accumulator_silence" not in client("GET", "/metrics").text
    object.__setattr__(client.service, "silence", lambda: 7.0)
    assert "streaming_moments_accumulator_silence_seconds 7.0" in client("GET", "/metrics").text
    assert "It last reported 7 s ago" in client("GET", "/health").text


def test_what_is_not_there_is_a_problem_too(client):
    problem(client("GET", "/nowhere"), 404)
    problem(client("DELETE", "/v1/status"), 405)
    told = client("PUT", "/v1/documents")
    assert {"POST", "DELETE"} == set(problem(told, 405) and told.headers["Allow"].split(", "))
    problem(client("GET", "/versions?before=289"), 404)
    problem(client("POST", "/try", data={"txt": "a"}), 422)
    problem(client("GET", f"/v1/receipts/{new_receipt(0)}"), 404)
    assert problem(client("GET", "/v1/receipts/x"), 422)["field"] == "receipt"
    for by in ("receipt", "id"):
        told = client("DELETE", "/v1/documents", params={by: "" if by == "id" else "x"})
        assert problem(told, 422)["field"] == by
    told = client("GET", "/healthz", headers={"X-Request-ID": "mine-7"})
    assert told.headers["X-Request-ID"] == "mine-7"
    told = client("GET", "/healthz", headers={"X-Request-ID": "no such id"})
    assert len(told.headers["X-Request-ID"]) == 32


def test_tokens_say_who_may_do_what(serve, place):
    path = place / "tokens.json"
    made = {role: add_token(path, role.name.lower(), role) for role in Role}
    with serve(tokens=str(path)) as client:

        def asked(role, method="GET", call="/v1/status", **how):
            headers = {"Authorization": f"Bearer {made[role]}"}
            return client(method, call, headers=headers, **how).status_code

        answer = client("GET", "/v1/status")
        assert problem(answer, 401)["field"] == "Authorization"
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        for wrong in ("Bearer sm_wrong", "Basic eA==", "Bearer"):
            problem(client("GET", "/v1/status", headers={"Authorization": wrong}), 401)
        assert asked(Role.READER) == 200
        assert asked(Role.READER, "POST", "/v1/documents", json=[{"text": "a"}]) == 403
        assert asked(Role.WRITER, "POST", "/v1/documents", json=[{"text": "a"}]) == 202
        assert client("GET", "/healthz").status_code == 200
        for line in client.lines:
            assert not any(token in repr(line) for token in made.values())
        # the same key of two is not the same
        keys = [
            client.send([{"text": role.name}], "k", headers={"Authorization": f"Bearer {one}"})
            for role, one in made.items()
            if role > Role.READER
        ]
        assert len({answer.json()["receipt"] for answer in keys}) == 2
    assert made[Role.READER] not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_without_tokens_only_this_machine_is_answered(client):
    answer = client("GET", "/v1/status", headers={"Host": "evil.example"})
    problem(answer, 421)
    assert client("GET", "/v1/status", headers={"Host": "localhost:99"}).status_code == 200


def test_no_log_holds_a_text_or_a_key(client):
    client.send([{"text": "planted-secret-text"}], "planted-key")
    client.send([{"text": 1, "planted-field": 2}])
    assert any(line["event"] == "call" and line["status"] == 202 for line in client.lines)
    assert "planted" not in repr(client.lines)


def test_the_document_of_the_calls_is_one_and_answers_are_as_it_says(client):
    document = client("GET", "/v1/openapi.json").json()
    openapi_spec_validator.validate(document)
    schemas = {"components": document["components"]}
    for path in ("/v1/models", "/v1/versions", "/readyz"):
        told = document["paths"][path]["get"]["responses"]["200"]["content"]
        schema = {**told["application/json"]["schema"], **schemas}
        jsonschema.validate(client("GET", path).json(), schema)
    assert "/v1/documents" in client("GET", "/docs").text
    assert "http-equiv" not in client("GET", "/docs").text


def raw(client, content, seconds):
    """What comes back of bytes, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=seconds) as connection:
        connection.sendall(content)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
        return found


def test_who_sends_slowly_is_let_go(serve):
    with serve(limits={"seconds": "300ms"}) as client:
        assert raw(client, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A:", 30) == b""
        head = b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\n"
        head += b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n["
        assert b" 408 " in raw(client, head, 30)
        assert client("GET", "/healthz").status_code == 200
        assert b"400 Bad" in raw(client, b"nonsense\r\n\r\n", 30)
        big = b"GET / HTTP/1.1\r\nX-A: " + b"a" * (1 << 20)
        started = time.monotonic()
        with contextlib.suppress(ConnectionError):
            raw(client, big, 30)
        assert time.monotonic() - started < 30


@pytest.mark.parametrize(("token", "status"), [("{token}", 413), ("none", 401)])
def test_a_client_that_sends_all_of_a_body_first_gets_the_refusal(serve, place, token, status):
    tokens = place / "tokens.json"
    token = token.format(token=add_token(tokens, "me", Role.WRITER))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with serve(tokens=str(tokens), limits={"body": "2MB"}) as client:
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        with contextlib.closing(connection):
            # urllib3 reads the answer also where sending fails, and http.client does not
            connection.request("POST", "/v1/documents", bytes(7 << 20), headers)
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())["status"]) == (status, status)
        assert gone(client)


def gone(client):
    """Whether every connection is closed, within a minute."""
    deadline = time.monotonic() + 60
    while client.server.server_state.connections and time.monotonic() < deadline:
        time.sleep(0.01)
    return not client.server.server_state.connections


def test_who_does_not_take_an_answer_is_let_go(serve, monkeypatch):
    monkeypatch.setattr(pages, "html_report", lambda report: "a" * (32 << 20))
    # by being idle it would be let go as well
    monkeypatch.setattr(serving, "_IDLE", 3600)
    with (
        serve(limits={"seconds": "200ms"}) as client,
        socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10)
        assert gone(client)


def test_connections_are_bounded(serve):
    with serve(limits={"connections": 2}) as client, contextlib.ExitStack() as stack:
        several = [
            stack.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=10))
            for _ in range(6)
        ]
        # idle ones give way to later ones; those that come all at once are closed themselves
        still = several[:]
        while len(still) > 4:
            ended, _, _ = select.select(still, [], [], 10)
            assert ended
            for one in ended:
                with contextlib.suppress(ConnectionError):
                    assert one.recv(1) == b""
                still.remove(one)
        assert len(client.server.server_state.connections) <= 4


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
bodies = st.binary(max_size=60) | jsons.map(lambda one: json.dumps(one).encode())
kinds = st.sampled_from(["application/json", "application/x-ndjson", "text/html", ""])
encodings = st.sampled_from(["", "gzip", "identity", "br"])
calls = st.sampled_from(["/v1/documents", "/v1/transform"])


@given(calls, bodies, kinds, encodings, st.text(st.characters(max_codepoint=255), max_size=9))
@settings(
    max_examples=BODIES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_body_whatever_is_a_fault(client, call, body, kind, encoding, key):
    headers = {"Content-Type": kind, "Content-Encoding": encoding}
    if key.isprintable() and key.isascii() and key.strip() == key:
        headers["Idempotency-Key"] = key
    answer = client("POST", call, data=body, headers=headers)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert problem(answer, answer.status_code)["detail"]


def test_a_receipt_is_found_in_a_batch_of_many(client):
    """Whose header is longer than what is read at first."""
    current = client.service.current
    several = [
        current.intake.shape.submission([{"text": str(n)}], new_receipt(0), False, TODAY.date())[0]
        for n in range(500)
    ]
    current.inbox.put(several)
    told = client("GET", f"/v1/receipts/{several[-1].receipt}").json()
    assert told["state"] == "accepted"

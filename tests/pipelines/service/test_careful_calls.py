"""Calls that are ambiguous are refused, and calls of a storage that hangs are answered."""

import json
import socket
import threading
import time
import uuid

import pytest

from streaming_moments.pipelines.service.http import admission
from streaming_moments.pipelines.service.http.bodies import documents_in, json_in
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.records import Unreadable

NDJSON = {"Content-Type": "application/x-ndjson"}
TWICE = '{"text": "a", "id": 1, "text": "b"}'


def raw(port, head, body=b""):
    """All that is answered on a connection until the server closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("path", ["/v1/documents", "/none"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(client, path, order):
    lengths = ["Content-Length: 4\n", "Transfer-Encoding: chunked\n"][::order]
    head = f"POST {path} HTTP/1.1\nHost: localhost\n{''.join(lengths)}\n"
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(client.port, head, smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Content-Length and Transfer-Encoding" in answer


def test_two_keys_of_one_request_are_refused(client):
    kind = "Connection: close\nContent-Type: application/json\nContent-Length: 15\n"
    keys = "Idempotency-Key: a\nIdempotency-Key: b\n"
    head = f"POST /v1/documents HTTP/1.1\nHost: localhost\n{kind}{keys}\n"
    answer = raw(client.port, head, b'[{"text": "a"}]')
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert b"sent twice; send one key" in answer


def test_what_is_not_http_is_answered_as_other_calls(client):
    answer = raw(client.port, "GET / HTTP/1.1\nHost\n\n", b"")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"application/problem+json" in head
    told = json.loads(body)
    assert (told["status"], told["title"]) == (400, "The request cannot be read")
    assert told["detail"].startswith("the request is not valid HTTP/1.1")
    assert len(told["request_id"]) == 32


def test_a_document_that_names_something_twice_is_refused_by_its_place(client):
    array = f'[{{"text": "a"}}, {TWICE}, {{"text": "\\":\\": c"}}]'
    json_type = {"Content-Type": "application/json"}
    told = client("POST", "/v1/documents", data=array, headers=json_type)
    assert (told.status_code, told.json()["document"]) == (422, 1)
    assert "'text' appears twice" in told.json()["detail"]
    lines = "\n".join(['{"text": "a"}', TWICE, '{"text": "\\": c", "id" : 7}'])
    for body, headers in ((array, json_type), (lines, NDJSON)):
        told = client("POST", "/v1/documents?skip_bad=1", data=body, headers=headers).json()
        assert (told["documents"], [one["document"] for one in told["left_out"]]) == (2, [1])


def test_names_are_counted_and_not_what_texts_hold():
    kind = "application/json"
    text = 'a ":" b": c\\":'
    several = [{"text": text, "id": '":'}] * 3
    assert list(documents_in(json.dumps(several).encode(), kind, 5)) == several
    spread = b'[{"text"\n\t : "a", "text"  : "b"}]'
    assert [type(one) for one in documents_in(spread, kind, 5)] == [Unreadable]
    assert json_in(b'{"texts": ["\\": x"]}', 5) == {"texts": ['": x']}
    for body in (
        b'{"a": 1, "a": 2}',
        b'{"a": [{"b": 1, "b": 2}]}',
        b'{"a": {"b": 1, "\\u0062": 2}}',
    ):
        with pytest.raises(Problem, match="appears twice"):
            json_in(body, 5)
    assert json_in(b'{"a": {"b": 123456789012345678901234567890}}', 5)["a"]["b"] > 10**29


def deleted(client, **body):
    return client("POST", "/v1/deletions", json=body)


def test_a_thousand_ids_are_deleted_by_a_body(client):
    ids = [str(uuid.uuid4()) for _ in range(1000)]
    asked = deleted(client, ids=ids)
    assert asked.status_code == 202, asked.text
    identity = asked.json()["deletion"]
    assert asked.headers["Location"] == f"/v1/deletions/{identity}"
    assert client("GET", asked.headers["Location"]).json()["state"] == "accepted"
    assert client.service.deletions.waiting()[identity].names == tuple(ids)
    assert client.service.deletions.waiting()[identity].by == "id"


def test_what_is_no_list_of_names_deletes_nothing(client):
    receipt = client.send([{"text": "a"}]).json()["receipt"]
    refused = [
        {},
        {"ids": []},
        {"ids": ["a"], "receipts": [receipt]},
        {"ids": "a"},
        {"ids": [""]},
        {"ids": [None]},
        {"ids": [True]},
        {"ids": ["a"] * 1001},
        {"receipts": ["a"]},
        {"names": ["a"]},
    ]
    assert [deleted(client, **body).status_code for body in refused] == [422] * len(refused)
    assert client("POST", "/v1/deletions", data=b"{}", headers=NDJSON).status_code == 415
    assert client.service.deletions.waiting() == {}
    assert deleted(client, receipts=[receipt]).status_code == 202
    assert deleted(client, ids=[7, "b"]).status_code == 202
    assert {one.names for one in client.service.deletions.waiting().values()} == {
        (receipt,),
        ("7", "b"),
    }


def test_each_call_is_answered_while_the_storage_hangs(serve, monkeypatch):
    """And no more of them are worked on at once than ever."""
    goes_on, exists, find = threading.Event(), Folder.exists, Folder.find

    def hanging(method):
        def waits(folder, name):
            if threading.current_thread().name.startswith("AnyIO"):
                assert goes_on.wait(120)
            return method(folder, name)

        return waits

    with serve(limits={"seconds": "200ms", "requests": 3}) as client:
        receipt = client.send([{"text": "a"}], "k").json()["receipt"]
        # no handler answers before the limit of all calls
        monkeypatch.setattr(admission, "_GRACE", 0.1)
        monkeypatch.setattr(Folder, "exists", hanging(exists))
        monkeypatch.setattr(Folder, "find", hanging(find))
        try:
            for _ in range(3):
                answer = client("GET", f"/v1/receipts/{receipt}")
                assert (answer.status_code, "storage" in answer.json()["detail"]) == (503, True)
                assert int(answer.headers["Retry-After"]) > 0
            assert client("GET", "/healthz").status_code == 200
            crowded = client("GET", f"/v1/receipts/{receipt}")
            assert (crowded.status_code, "too many" in crowded.json()["detail"]) == (503, True)
        finally:
            goes_on.set()
        deadline = time.monotonic() + 60
        while client("GET", f"/v1/receipts/{receipt}").status_code == 503:
            assert time.monotonic() < deadline
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "accepted"

"""Documents that come and deletions that are asked for, called in this process."""

import asyncio
import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from service_answers import problem

from streaming_moments.pipelines.service.http.admission import require_room, written_in_time
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.inbox.inbox import Backlog
from streaming_moments.storage.inbox.rejected import read_left_out


def free(caller):
    """Whether no byte of a body is held; what is written gives back from a thread."""
    budget = caller.service.budget
    deadline = threading.Event()
    for _ in range(500):
        if budget._held == 0:
            return True
        deadline.wait(0.01)
    return False


def test_documents_are_acknowledged_counted_and_held_no_more(caller):
    records = [{"text": "a", "id": 1}, {"text": "b", "date": "2026-11-20"}]
    told = caller.post("/v1/documents", records)
    assert told.status == 202
    receipt = told.json()
    assert told.headers["location"] == f"/v1/receipts/{receipt['receipt']}"
    assert receipt == {
        "receipt": receipt["receipt"],
        "state": "accepted",
        "documents": 2,
        "version": None,
        "reason": "",
        "left_out": [],
        "empty": 0,
    }
    (batch,) = caller.service.current.inbox.pending()
    (one,) = caller.service.current.inbox.read(batch.name)
    assert [(piece.day.isoformat(), piece.documents) for piece in one.pieces] == [
        ("2026-11-20", 1),
        ("2026-11-23", 1),
    ]
    rates, metrics = caller.service.gauges.rates.last(60), caller("GET", "/metrics").text
    assert rates["documents"] == 2
    assert "streaming_moments_service_documents_total 2.0" in metrics
    assert f"streaming_moments_service_bytes_total {float(len(one.content))}" in metrics
    assert free(caller)
    found = caller("GET", told.headers["location"])
    assert (found.status, found.json()["state"]) == (200, "accepted")


def test_a_key_is_of_a_principal_and_stands_for_one_content(caller):
    first = caller.post("/v1/documents", [{"text": "a"}], idempotency_key="k").json()["receipt"]
    assert first.startswith("k")
    again = caller.post("/v1/documents", [{"text": "a"}], idempotency_key="k")
    assert (again.status, again.json()["receipt"]) == (202, first)
    other = caller.post("/v1/documents", [{"text": "b"}], idempotency_key="k")
    assert problem(other, 422)["field"] == "Idempotency-Key"
    long = caller.post("/v1/documents", [{"text": "b"}], idempotency_key="k" * 256)
    assert problem(long, 422)["field"] == "Idempotency-Key"
    assert caller.post("/v1/documents", [{"text": "b"}]).json()["receipt"].startswith("b")
    assert free(caller)


def test_bad_documents_are_left_out_and_noted_where_it_is_allowed(caller):
    records = [{"text": "a"}, {"text": 5, "id": "x"}, {"txt": "b"}]
    told = problem(caller.post("/v1/documents", records), 422)
    assert (told["document"], told["field"]) == (1, "text")
    assert caller.service.current.inbox.pending() == []
    assert free(caller)
    receipt = caller.post("/v1/documents?skip_bad=1", records).json()
    assert receipt["documents"] == 1
    assert [(one["document"], one["field"]) for one in receipt["left_out"]] == [
        (1, "text"),
        (2, "txt"),
    ]
    folder = caller.service.current.inbox.folder
    assert len(read_left_out(folder, receipt["receipt"])) == 2
    found = caller("GET", f"/v1/receipts/{receipt['receipt']}").json()
    assert found["left_out"] == receipt["left_out"]


def test_documents_without_content_are_told_and_taken(caller):
    records = [{"text": ""}, {"text": " \n"}, {"text": "."}, {"text": "", "date": "?"}, {"id": 1}]
    receipt = caller.post("/v1/documents?skip_bad=1", records).json()
    assert (receipt["documents"], receipt["empty"], len(receipt["left_out"])) == (3, 2, 2)


@pytest.mark.parametrize("number", [2, 3])
def test_as_many_documents_are_taken_as_are_allowed(call_at, number):
    with call_at("night", limits={"documents": 2, "body": 100}) as caller:
        answer = caller.post("/v1/documents", [{"text": "a"}] * number)
        assert answer.status == (202 if number == 2 else 413)
        large = caller("POST", "/v1/documents", [b" " * 101], content_type="application/json")
        assert problem(large, 413)["detail"] == "the body is above 100B; send it in parts"
        assert free(caller)
        assert caller.service.budget.nbytes == 400


def test_while_too_much_waits_documents_are_refused_and_told_when_to_come_again(call_at):
    with call_at("night", limits={"inbox": 1000, "inbox_age": "10s"}) as caller:
        current, service = caller.service.current, caller.service
        for waits, detail in (
            (Backlog(1, 1, 999, timedelta(seconds=9.9)), None),
            (Backlog(1, 1, 1000), "1,000 bytes of documents are pending, and at most 1000B may be"),
            (Backlog(1, 1, 1, timedelta(seconds=10)), "documents have been pending for 10 seconds"),
        ):
            current.view = replace(current.view, backlog=waits)
            if detail is None:
                require_room(service)
                continue
            with pytest.raises(Problem, match=detail) as refused:
                require_room(service)
            assert (refused.value.status, refused.value.retry_after) == (429, 5)
            answer = caller.post("/v1/documents", [{"text": "a"}])
            assert problem(answer, 429)
            assert answer.headers["retry-after"] == "5"
        current.view = replace(current.view, backlog=Backlog(), problems={"owner": "of another"})
        assert (
            "another store" in problem(caller.post("/v1/documents", [{"text": "a"}]), 503)["detail"]
        )
        assert problem(caller("DELETE", "/v1/documents?id=a"), 503)
        assert service.deletions.waiting() == {}


def test_a_storage_that_does_not_answer_in_time_is_told_and_what_it_writes_is_held(
    call_at, monkeypatch
):
    goes_on = threading.Event()
    with call_at("night", limits={"seconds": "50ms", "inbox": 1000}) as caller:
        inbox, put = type(caller.service.current.inbox), type(caller.service.current.inbox).put

        def hanging(self, *told):
            goes_on.wait(60)
            return put(self, *told)

        monkeypatch.setattr(inbox, "put", hanging)
        answer = caller.post("/v1/documents", [{"text": "a"}], idempotency_key="k")
        told = problem(answer, 503)
        assert "the storage did not answer in 0.05 seconds" in told["detail"]
        assert answer.headers["retry-after"] == "5"
        assert caller.service.budget._held == len(json.dumps([{"text": "a"}]))
        # what is being written waits as well
        current, held = caller.service.current, caller.service.commits.held_bytes
        assert 0 < held < 1000
        view = current.view
        current.view = replace(view, backlog=Backlog(1, 1, 999 - held))
        require_room(caller.service)
        current.view = replace(view, backlog=Backlog(1, 1, 1000 - held))
        with pytest.raises(Problem, match="1,000 bytes of documents are pending"):
            require_room(caller.service)
        current.view = view
        goes_on.set()
        again = caller.post("/v1/documents", [{"text": "a"}], idempotency_key="k")
        assert again.status in (202, 503)
        caller.service.commits.close()
        caller("GET", "/healthz")
        assert free(caller)


def test_what_fails_once_nobody_waits_for_it_is_no_fault_of_the_loop():
    told = []

    async def late():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
        written = loop.create_future()
        with pytest.raises(Problem, match="did not answer in 0 seconds"):
            await written_in_time(written, 0)
        written.set_exception(OSError("away"))
        await asyncio.sleep(0)

    asyncio.run(late())
    assert told == []


def test_receipts_that_are_none_or_not_known_are_named(caller):
    for name in ("x", "b" + "0" * 32, "k" + "0" * 31):
        assert problem(caller("GET", f"/v1/receipts/{name}"), 422)["field"] == "receipt"
    unknown = "k" + "0" * 32
    told = problem(caller("GET", f"/v1/receipts/{unknown}"), 404)
    assert (told["field"], unknown in told["detail"]) == ("receipt", True)


def test_deletions_are_asked_for_by_one_kind_of_name(caller):
    waiting = caller.service.deletions.waiting
    receipt = "k" + "0" * 32
    for query in ("", "?id=a&receipt=" + receipt):
        told = problem(caller("DELETE", f"/v1/documents{query}"), 422)
        assert (told["field"], "but not both" in told["detail"]) == ("receipt", True)
    assert problem(caller("DELETE", "/v1/documents?id="), 422)["field"] == "id"
    assert problem(caller("DELETE", "/v1/documents?receipt=x"), 422)["field"] == "receipt"
    assert waiting() == {}
    several = caller("DELETE", "/v1/documents?id=a&id=b")
    one = caller("DELETE", f"/v1/documents?receipt={receipt}")
    assert (several.status, one.status) == (202, 202)
    names = {name: (found.by, found.names) for name, found in waiting().items()}
    assert names == {
        several.json()["deletion"]: ("id", ("a", "b")),
        one.json()["deletion"]: ("receipt", (receipt,)),
    }
    assert one.json() == {
        "deletion": one.json()["deletion"],
        "state": "accepted",
        "documents": None,
        "version": None,
    }
    assert one.headers["location"] == f"/v1/deletions/{one.json()['deletion']}"
    assert caller("GET", one.headers["location"]).json() == one.json()


@pytest.mark.parametrize(
    ("method", "path", "known"),
    [
        ("POST", "/v1/documents?skipbad=true", "did you mean 'skip_bad'?"),
        ("POST", "/v1/transform?skipbad=a", "the call takes none"),
        ("DELETE", "/v1/documents?skipbad=a&id=b", "the call takes only receipt, id"),
        ("GET", "/time?skipbad=a", None),
    ],
)
def test_calls_for_programs_refuse_unknown_parameters(caller, method, path, known):
    answer = caller(method, path)
    if known is None:
        assert answer.status == 200
    else:
        told = problem(answer, 422)
        assert told["field"] == "skipbad"
        assert told["detail"] == f"there is no parameter 'skipbad'; {known}"


def test_of_two_values_none_is_taken(caller):
    body = [{"text": "a"}]
    twice = caller.post("/v1/documents?skip_bad=true&skip_bad=false", body)
    assert problem(twice, 422)["detail"] == "skip_bad is given 2 times; give it once"
    assert twice.json()["field"] == "skip_bad"
    assert caller.service.current.inbox.pending() == []
    assert caller("DELETE", "/v1/documents?id=a&id=b").status == 202


def test_deletions_of_a_body_are_as_those_of_an_address(caller):
    receipt, waiting = "k" + "0" * 32, caller.service.deletions.waiting
    for body, field in (
        ({}, None),
        ([], None),
        ({"ids": ["a"], "receipts": []}, None),
        ({"names": ["a"]}, None),
        ({"ids": "a"}, "ids"),
        ({"ids": [True]}, "ids"),
        ({"ids": [1.5]}, "ids"),
        ({"ids": [[]]}, "ids"),
        ({"receipts": "a"}, "receipts"),
        ({"ids": []}, "id"),
        ({"ids": ["a"] * 1001}, "id"),
        ({"receipts": ["a"]}, "receipt"),
    ):
        assert problem(caller.post("/v1/deletions", body), 422).get("field") == field, body
    told = problem(caller("POST", "/v1/deletions", [b"{}"], content_type="x" * 61), 415)
    assert told["field"] == "Content-Type"
    assert told["detail"] == f"the content type is {'x' * 60!r}; send application/json"
    assert (waiting(), free(caller)) == ({}, True)
    for body, by, names in (
        ({"ids": ["a", 7]}, "id", ("a", "7")),
        ({"receipts": [receipt]}, "receipt", (receipt,)),
        ({"ids": ["a"] * 1000}, "id", ("a",) * 1000),
    ):
        told = caller.post("/v1/deletions", body, content_type="application/json; charset=utf-8")
        assert told.status == 202
        assert waiting()[told.json()["deletion"]] == Deletion(by, names)
    assert free(caller)


def test_what_became_of_a_deletion(caller):
    deletions = caller.service.deletions
    identity = deletions.ask(Deletion("id", ("a",)))
    plan = deletions.plan(identity, deletions.waiting()[identity])
    deletions.finish(identity, plan, 7)
    assert caller("GET", f"/v1/deletions/{identity}").json() == {
        "deletion": identity,
        "state": "done",
        "documents": 0,
        "version": 7,
    }
    none = "0" * 32
    told = problem(caller("GET", f"/v1/deletions/{none}"), 404)
    assert (told["field"], told["detail"]) == ("deletion", f"there is no deletion {none}")
    for wrong in ("0" * 31, "0" * 33, "g" * 41):
        told = problem(caller("GET", f"/v1/deletions/{wrong}"), 422)
        assert told["field"] == "deletion"
        assert (
            told["detail"]
            == f"{wrong[:40]!r} is not the id of a deletion; give the id in the answer to a "
            "deletion request"
        )

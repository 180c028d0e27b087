"""What is asked of a store and its models, called in this process."""

import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from service_answers import problem

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.counting_progress import Counting
from streaming_moments.pipelines.service.http import reading
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.reading import called, documents_asked, texts_in
from streaming_moments.pipelines.service.published import Published
from streaming_moments.storage.inbox.inbox import Backlog


def refused(act, status, detail, field="", place=None):
    with pytest.raises(Problem) as told:
        act()
    found = told.value
    assert (found.status, found.field, found.place) == (status, field, place)
    assert detail in found.detail


def test_what_is_no_list_of_texts_is_refused_by_its_field_and_place():
    assert texts_in({"texts": ["abc", ""]}, 2, 3) == ["abc", ""]
    for none in ([], None, {}, {"texts": ["a"], "more": 1}, {"documents": ["a"]}):
        refused(lambda none=none: texts_in(none, 2, 3), 422, 'send {"texts": ["..."]}')
    for none in ([], "a", None, {"a": 1}):
        refused(
            lambda none=none: texts_in({"texts": none}, 2, 3), 422, "at least one text", "texts"
        )
    refused(lambda: texts_in({"texts": ["a"] * 3}, 2, 3), 413, "there are 3 texts", "texts")
    refused(lambda: texts_in({"texts": ["a", 1]}, 2, 3), 422, "text 1 is not a string", "texts", 1)
    refused(lambda: texts_in({"texts": ["abcd"]}, 2, 3), 413, "above 3 characters", "texts", 0)


def test_what_is_no_list_of_documents_is_refused_by_its_field():
    assert documents_asked({"documents": [1, {}]}, 2) == [1, {}]
    for none in ([], None, {}, {"documents": [1], "more": 1}, {"texts": ["a"]}):
        refused(lambda none=none: documents_asked(none, 2), 422, 'send {"documents": [{...}]}')
    for none in ([], "a", None, {"a": 1}):
        refused(
            lambda none=none: documents_asked({"documents": none}, 2), 422, "one doc", "documents"
        )
    refused(lambda: documents_asked({"documents": [1] * 3}, 2), 413, "there are 3 doc", "documents")


def test_texts_are_answered_by_the_model_and_counted(caller):
    first = caller.service.view.published.index.vocabulary.terms[0]
    told = caller.post("/v1/transform", {"texts": [f"{first} zz zz", f"{first} zz zz zz zz", ""]})
    content = told.json()
    assert (told.status, content["model"], content["version"]) == (200, "night-v3", 4)
    found = [(one["words"], one["known"], one["foreign"]) for one in content["texts"]]
    assert found == [(3, 1, False), (5, 1, False), (0, 0, False)]
    assert [sum(one["proportions"]) for one in content["texts"]] == pytest.approx([1, 1, 1])
    assert caller.post("/v1/transform", {"texts": [f"{first} zz zz zz zz zz"]}).json()["texts"][0][
        "foreign"
    ]
    assert caller.service.gauges.rates.last(60)["texts"] == 4
    assert caller.service.budget.take(caller.service.budget.nbytes), "nothing is held"


def test_documents_that_are_no_texts_are_answered_and_counted(call_at):
    with call_at("vectors") as caller:
        published, intake = caller.service.view.published, caller.service.current.intake
        [field] = intake.shape.counted
        rows = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        told = caller.post("/v1/transform", {"documents": [{field.name: row} for row in rows]})
        assert told.status == 200, told.text
        content = told.json()
        assert (content["model"], content["version"]) == (published.name, published.version)
        assert len(content["documents"]) == 2
        assert caller.service.gauges.rates.last(60)["texts"] == 2
        bad = {"documents": [{field.name: rows[0]}, {field.name: "a"}]}
        told = problem(caller.post("/v1/transform", bad), 422)
        assert (told["document"], told["field"]) == (1, field.name)


def test_a_body_that_is_refused_is_held_no_more(caller):
    budget = caller.service.budget
    assert problem(caller.post("/v1/transform", {"texts": []}), 422)["field"] == "texts"
    for kind in ("text/plain", "", "application/x-ndjson"):
        answer = caller("POST", "/v1/transform", [b"{}"], content_type=kind)
        found = f"the content type is {kind!r}" if kind else "the header Content-Type is missing"
        assert problem(answer, 415)["detail"] == f"{found}; send application/json"
    long = caller("POST", "/v1/transform", [b"{}"], content_type="x" * 61)
    assert f"{'x' * 60!r};" in problem(long, 415)["detail"]
    assert problem(long, 415)["field"] == "Content-Type"
    content = caller("POST", "/v1/transform", [b"?"], content_type="application/JSON ; charset=a")
    assert problem(content, 400)
    assert budget.take(budget.nbytes)


def test_a_store_without_a_model_has_nothing_to_say(caller):
    caller.service.current.view = replace(caller.service.view, published=None)
    for answer in (caller.post("/v1/transform", {"texts": ["a"]}), caller("GET", "/time")):
        assert "has no model" in problem(answer, 404)["detail"]
    assert caller("GET", "/v1/models").json()["answering"] is None
    ready = caller("GET", "/readyz")
    assert (ready.status, ready.json()["model"]) == (503, False)


def test_models_are_listed_with_the_version_that_they_were_fitted_on(caller):
    assert caller("GET", "/v1/models").json() == {
        "answering": "night-v3",
        "tags": {"published": "night-v3"},
        "models": [
            {"name": "night-v1", "version": 1},
            {"name": "night-v3", "version": 3},
        ],
    }


def test_which_model_is_asked_for(caller):
    request = SimpleNamespace(query_params={})
    assert called(caller.service, request) == "night-v3"
    for asked, name in (("night-v1", "night-v1"), ("published", "night-v3")):
        request.query_params["model"] = asked
        assert called(caller.service, request) == name
    request.query_params["model"] = "none"
    refused(lambda: called(caller.service, request), 404, "none", "model")
    caller.service.current.view = replace(caller.service.view, published=None)
    request.query_params.clear()
    assert called(caller.service, request) == "night-v3", "the latest"


def test_topics_have_as_many_words_as_are_asked_for(caller):
    for query, words in (("", 10), ("?words=1", 1), ("?words=1000", 15)):
        found = caller("GET", f"/v1/topics{query}").json()
        assert [len(one["words"]) for one in found["topics"]] == [words, words]
    assert {"n_topics", "fitted_version", "stale", "npmi", "diversity"} <= found.keys()
    assert found["model"] == "night-v3"
    assert found["store"] == caller.service.view.store.url
    assert problem(caller("GET", "/v1/topics?words=1001"), 422)["field"] == "words"
    assert problem(caller("GET", "/v1/topics?words=0"), 422)["field"] == "words"


def test_labels_of_topics_and_of_states_are_told(call_at):
    with call_at("counts_3") as caller:
        found = caller("GET", "/v1/topics").json()["topics"]
        assert [one["label"] for one in found] == [None, "law & <sea>"]
    with call_at("vectors") as caller:
        found = caller("GET", "/v1/topics?words=2").json()
        assert (found["topics"], [one["state"] for one in found["states"]]) == ([], [0, 1])
        assert [one["label"] for one in found["states"]] == [None, "law & <sea>"]
        assert (found["dimension"], found["stale"]) == (3, False)
        told = problem(caller("GET", "/v1/shares"), 422)
        assert (told["field"], "which has no topics" in told["detail"]) == ("model", True)
        status = caller("GET", "/v1/status").json()
        assert (status["kind"], status["vectors"]) == ("vectors", 300)


def test_the_store_is_told_in_numbers_with_what_waits(caller):
    waits = Backlog(2, 3, 400, timedelta(seconds=7.6))
    caller.service.current.view = replace(caller.service.view, backlog=waits)
    told = caller("GET", "/v1/status").json()
    assert told["inbox"] == {"batches": 2, "documents": 3, "bytes": 400, "seconds": 8}
    assert (told["version"], told["documents"], told["words"]) == (4, 240, 15)


@pytest.mark.parametrize(
    ("query", "versions"),
    [("", [4, 3, 2, 1, 0]), ("?limit=2", [4, 3]), ("?limit=5", [4, 3, 2, 1, 0]), ("?limit=1", [4])],
)
def test_versions_are_listed_the_latest_first(caller, query, versions):
    told = caller("GET", f"/v1/versions{query}").json()
    assert [one["version"] for one in told["versions"]] == versions
    assert told["store"] == caller.service.view.store.url
    assert told["versions"][0]["operation"] == "model"
    assert caller("GET", "/v1/versions?limit=1000").status == 200
    assert problem(caller("GET", "/v1/versions?limit=1001"), 422)["field"] == "limit"


def test_of_many_versions_the_latest_are_read(caller, monkeypatch):
    firsts, store = [], SimpleNamespace(version=100, url="a store")
    monkeypatch.setattr(reading, "log_lines", lambda store, first: firsts.append(first) or [])
    caller.service.current.view = replace(caller.service.view, store=store)
    for query in ("", "?limit=7", "?limit=1000"):
        assert caller("GET", f"/v1/versions{query}").json()["versions"] == []
    assert firsts == [51, 94, 0]


def test_shares_are_of_days_weeks_or_months(caller):
    days = caller("GET", "/v1/shares").json()
    assert (days["model"], days["by"], len(days["periods"])) == ("night-v3", "day", 2)
    assert [one["first"] for one in days["periods"]] == ["2026-11-20", "2026-11-21"]
    months = caller("GET", "/v1/shares?by=month&model=night-v1").json()
    assert (months["model"], months["by"], len(months["periods"])) == ("night-v1", "month", 1)
    assert months["periods"][0]["tokens"] == sum(one["tokens"] for one in days["periods"])


def readiness(caller, **changed):
    caller.service.current.view = replace(caller.service.view, **changed)
    answer = caller("GET", "/readyz")
    told = answer.json()
    return answer.status, *(told[name] for name in ("ready", "store", "inbox", "model", "counting"))


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        (None, (200, True, True, True, True, True)),
        ("store", (503, False, False, True, True, True)),
        ("inbox", (503, False, True, False, True, True)),
        ("seals", (503, False, True, False, True, True)),
        ("owner", (503, False, True, False, True, True)),
        ("tokens", (503, False, True, True, True, True)),
        ("documents", (503, False, True, True, True, True)),
        ("counting", (200, True, True, True, True, False)),
        ("model", (200, True, True, True, True, True)),
    ],
)
def test_readiness_names_what_is_wrong(caller, problem, found):
    problems = {} if problem is None else {problem: "so"}
    assert readiness(caller, problems=problems) == found
    assert caller("GET", "/readyz").json()["problems"] == list(problems)


def test_readiness_ends_with_the_patience_for_counting_and_for_the_storage(call_at):
    with call_at("night", limits={"inbox_age": "1h"}, refresh="1s") as caller:
        now = time.monotonic()
        for since, found in ((now - 3500, (200, True)), (now - 3601, (503, False))):
            told = readiness(caller, counting=Counting(since=since))
            assert (told[0], told[-1]) == found
        readiness(caller, counting=Counting())
        for silence, status in ((55, 200), (60.5, 503)):
            caller.service.current._looked = time.monotonic() - silence
            answer = caller("GET", "/readyz")
            assert answer.status == status
            assert answer.json()["problems"] == ["storage"] * (status == 503)
    with call_at("counts_2", refresh="20s") as caller:
        for silence, status in ((190, 200), (201, 503)):
            caller.service.current._looked = time.monotonic() - silence
            assert caller("GET", "/readyz").status == status


def test_a_process_that_answers_lives(caller):
    assert caller("GET", "/healthz").json() == {"alive": True}


def test_a_new_store_is_ready_without_a_model(caller, monkeypatch):
    view = caller.service.view
    commit = replace(view.store.commit, models={}, tags={})
    store = replace(view.store, commit=commit)
    found = readiness(caller, store=store, published=None)
    assert found == (200, True, True, True, False, True)
    assert Published.of(store, "published") is None


def test_a_document_of_the_calls_is_made_once_for_what_a_store_takes(caller):
    described = caller.app.app.app.state.described
    first = described.of(caller.service.current.intake)
    assert described.of(caller.service.current.intake)[0] is first[0]
    other = replace(caller.service.current.intake)
    assert described.of(other)[0] is not first[0]
    assert caller("GET", "/v1/openapi.json").json() == first[0]
    with_tokens = first[0]["components"].keys()
    assert "securitySchemes" not in with_tokens


def test_without_documents_that_it_takes_a_store_says_why(caller):
    view = caller.service.view
    caller.service.current.view = replace(view, intake=None, problems={"documents": "of ids"})
    assert problem(caller("GET", "/v1/openapi.json"), 503)["detail"] == "of ids"
    caller.service.current.view = replace(view, intake=None)
    with pytest.raises(StoreError, match="accepts no documents"):
        assert caller.service.current.intake

"""What the OpenAPI document says of each call: who may, what it takes, gives and refuses."""

import json
from datetime import date

import pytest

from streaming_moments.pipelines.service.http.openapi import calls_of, openapi_document
from streaming_moments.pipelines.service.http.routes import CALLS
from streaming_moments.storage.inbox.records import RecordShape

PROBLEM = {"$ref": "#/components/schemas/ProblemDetails"}
JSON, PAGE, FORM = "application/json", "text/html", "application/x-www-form-urlencoded"
BODY = (400, 408, 413, 415, 422)
# role, status of a good answer, its content type, and what may be refused beside 500 and 503
SAID = {
    "POST /v1/documents": ("writer", 202, JSON, (*BODY, 429, 507)),
    "DELETE /v1/documents": ("admin", 202, JSON, (422, 507)),
    "POST /v1/deletions": ("admin", 202, JSON, (*BODY, 507)),
    "GET /v1/deletions/{deletion}": ("admin", 200, JSON, (404, 422)),
    "GET /v1/receipts/{receipt}": ("writer", 200, JSON, (404, 422)),
    "POST /v1/transform": ("reader", 200, JSON, (*BODY, 404)),
    "GET /v1/topics": ("reader", 200, JSON, (404, 422)),
    "GET /v1/models": ("reader", 200, JSON, ()),
    "GET /v1/status": ("reader", 200, JSON, ()),
    "GET /v1/versions": ("reader", 200, JSON, (422,)),
    "GET /v1/shares": ("reader", 200, JSON, (404, 422)),
    "GET /v1/shares/origins": ("reader", 200, JSON, (404, 422)),
    "GET /metrics": ("reader", 200, "text/plain", ()),
    "GET /healthz": (None, 200, JSON, ()),
    "GET /readyz": (None, 200, JSON, ()),
    "GET /v1/openapi.json": (None, 200, JSON, ()),
    "GET /docs": (None, 200, PAGE, ()),
    "GET /": ("reader", 200, PAGE, ()),
    "GET /topics/{topic}": ("reader", 200, PAGE, (404,)),
    "POST /topics/{topic}/label": ("admin", 303, PAGE, (*BODY, 403, 404)),
    "GET /time": ("reader", 200, PAGE, (404, 422)),
    "GET /choice": ("reader", 200, PAGE, ()),
    "POST /choice": ("admin", 303, PAGE, (*BODY, 403)),
    "GET /versions": ("reader", 200, PAGE, (404, 422)),
    "GET /versions/{version}/rollback": ("admin", 200, PAGE, (404, 409)),
    "POST /versions/{version}/rollback": ("admin", 303, PAGE, (*BODY, 403, 404, 409)),
    "GET /health": ("reader", 200, PAGE, ()),
    "GET /try": ("reader", 200, PAGE, ()),
    "POST /try": ("reader", 200, PAGE, (*BODY, 404)),
}
TAKEN = {
    "POST /v1/documents": "DocumentSent",
    "POST /v1/deletions": "DocumentsToForget",
    "POST /v1/transform": "TextsToRead",
    "POST /topics/{topic}/label": "LabelGiven",
    "POST /choice": "Confirmed",
    "POST /versions/{version}/rollback": "ReturnConfirmed",
    "POST /try": "TextTried",
}

EXAMPLES = {
    "POST /v1/deletions": {"ids": ["7", "8"]},
    "POST /v1/transform": {"texts": ["the sea and a ship"]},
}


def document(tokens=True, texts=True):
    return openapi_document(RecordShape(), tokens, "7.8.9", texts=texts)


def operations(found):
    return {f"{method} {path}": operation for method, path, operation in calls_of(found)}


@pytest.mark.parametrize("tokens", [True, False])
def test_each_call_says_who_may_what_it_gives_and_what_is_refused(tokens):
    found = operations(document(tokens))
    assert set(found) == set(SAID)
    for name, (role, status, gives, refusals) in SAID.items():
        operation = found[name]
        told = operation["responses"]
        unknown = (422,) if "/v1/" in name else ()  # a parameter that the call lacks
        wanted = {500, 503, *refusals, *unknown, *((401, 403) if tokens and role else ())}
        assert list(told) == list(map(str, [status, *sorted(wanted)])), name
        assert list(told[str(status)]["content"]) == [gives], name
        assert list(told[str(status)].get("headers", ())) == ["Location"] * (status == 202), name
        if tokens and role:
            assert operation["security"] == [{"token": []}]
            assert operation["description"] == f"Needs a token of role {role}."
        else:
            assert not {"security", "description"} & operation.keys()
        for code in map(str, wanted):
            if (name, code) == ("GET /readyz", "503"):
                assert told[code]["content"] == told["200"]["content"]
                continue
            assert told[code]["content"] == {"application/problem+json": {"schema": PROBLEM}}
            waits = told[code].get("headers", {})
            assert list(waits) == (["Retry-After"] if code in ("429", "503", "507") else []), name


def test_each_call_says_what_it_takes():
    found = operations(document())
    assert {name for name in found if "requestBody" in found[name]} == set(TAKEN)
    for name, taken in TAKEN.items():
        body = found[name]["requestBody"]
        one = {"$ref": f"#/components/schemas/{taken}"}
        assert body["required"] is True
        if name == "POST /v1/documents":
            array = {"type": "array", "items": one, "minItems": 1}
            content = body["content"].pop(JSON)
            assert content["schema"] == array
            documents = content["example"]
            assert [one["id"] for one in documents] == ["7", "8"]
            for place, sent in enumerate(documents):
                RecordShape().line(sent, place, date(2026, 11, 23))
            lines = body["content"]["application/x-ndjson"]["example"]
            assert [json.loads(line) for line in lines.splitlines()] == documents
            assert set(body["content"]) == {
                "application/x-ndjson",
                "application/vnd.apache.arrow.stream",
            }
            continue
        kind = JSON if name.startswith("POST /v1") else FORM
        example = EXAMPLES.get(name)
        told = {} if example is None else {"example": example}
        assert body["content"] == {kind: {"schema": one, **told}}, name


def test_parameters_are_named_with_what_they_may_be():
    found = operations(document())
    parameters = {
        (name, one["name"]): (one["in"], one["required"], one["schema"])
        for name, operation in found.items()
        for one in operation["parameters"]
    }
    several = {"type": "array", "items": {"type": "string", "minLength": 1}}
    version = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}
    natural = {"type": "integer", "minimum": 0}
    model = ("query", False, {"type": "string"})
    by = ("query", False, {"type": "string", "enum": ["day", "week", "month"], "default": "day"})
    key = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    skip = {"type": "boolean", "default": False}
    receipt = {"type": "string", "pattern": r"^(k[0-9a-f]{32}|b[0-9a-f]{32}-[0-9]{1,19})$"}
    words = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}
    back = "/versions/{version}/rollback"
    assert parameters == {
        ("POST /v1/documents", "Idempotency-Key"): ("header", False, key),
        ("POST /v1/documents", "skip_bad"): ("query", False, skip),
        ("DELETE /v1/documents", "receipt"): ("query", False, several),
        ("DELETE /v1/documents", "id"): ("query", False, several),
        ("GET /v1/deletions/{deletion}", "deletion"): (
            "path",
            True,
            {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        ),
        ("GET /v1/receipts/{receipt}", "receipt"): ("path", True, receipt),
        ("GET /v1/topics", "model"): model,
        ("GET /v1/topics", "words"): ("query", False, words),
        ("GET /v1/versions", "limit"): ("query", False, {**words, "default": 50}),
        ("GET /v1/shares", "by"): by,
        ("GET /v1/shares", "model"): model,
        ("GET /v1/shares", "origin"): model,
        ("GET /v1/shares/origins", "model"): model,
        ("GET /topics/{topic}", "topic"): ("path", True, natural),
        ("POST /topics/{topic}/label", "topic"): ("path", True, natural),
        ("GET /time", "by"): by,
        ("GET /time", "origin"): model,
        ("GET /versions", "before"): ("query", False, version),
        ("GET /versions", "after"): ("query", False, version),
        (f"GET {back}", "version"): ("path", True, natural),
        (f"POST {back}", "version"): ("path", True, natural),
    }


def test_the_document_is_of_the_package_and_of_what_the_store_takes():
    found = document()
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", "7.8.9")
    assert found["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert "securitySchemes" not in document(tokens=False)["components"]
    schemas = found["components"]["schemas"]
    assert schemas["Receipt"]["description"] == "State of documents that were sent."
    assert not any("$defs" in one for one in schemas.values())
    sent = schemas["DocumentSent"]
    assert (sent["type"], sent["required"], sent["additionalProperties"]) == (
        "object",
        ["text"],
        False,
    )
    assert set(sent["properties"]) == {"id", "date", "text"}
    assert sent["properties"]["id"]["anyOf"] == [
        {"type": "string", "minLength": 1, "maxLength": 1000},
        {"type": ["integer", "null"]},
    ]
    assert schemas["TextsToRead"]["properties"]["texts"]["minItems"] == 1
    assert schemas["TextsToRead"]["additionalProperties"] is False
    assert schemas["DocumentsToForget"]["properties"]["ids"]["maxItems"] == 1000
    assert schemas["DocumentsToForget"]["properties"]["receipts"]["maxItems"] == 1000


def test_a_store_of_other_documents_answers_of_these():
    found = document(texts=False)
    asked = operations(found)["POST /v1/transform"]
    assert asked["requestBody"]["content"][JSON]["schema"]["$ref"].endswith("/DocumentsToRead")
    assert asked["responses"]["200"]["content"][JSON]["schema"]["$ref"].endswith("/DocumentsRead")
    assert found["components"]["schemas"]["DocumentsToRead"]["properties"]["documents"] == {
        "items": {"$ref": "#/components/schemas/DocumentSent"},
        "minItems": 1,
        "title": "Documents",
        "type": "array",
    }
    names = {one["operationId"] for one in operations(found).values()}
    assert len(names) == len(CALLS)
    assert "reading_transform" in names

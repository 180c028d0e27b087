"""Every call of the OpenAPI document, with whatever is given: answered as the document says."""

import json
from urllib.parse import quote

import jsonschema
from campaigns import Campaigns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming_moments.pipelines.service.http.routes import CALLS

REQUESTS = Campaigns.asked_for().size(80, 5000)
OPERATIONS = [(call.method.lower(), call.path) for call in CALLS]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "0", "1", "-1", "true", "day", "first", "9" * 30, "..", "<b>", "a\x00b", "%"]
)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def bodies_of(operation):
    """Bodies of the content types that an operation takes, some of the kind it asks for."""
    kinds = list(operation.get("requestBody", {}).get("content", {})) or ["application/json"]
    documents = st.lists(st.fixed_dictionaries({"text": texts}, optional={"id": texts}))
    read = st.fixed_dictionaries({"texts": st.lists(texts, max_size=3)})
    content = (jsons | documents | read).map(lambda one: json.dumps(one).encode())
    return st.tuples(st.sampled_from(kinds), content | st.binary(max_size=40))


@given(st.sampled_from(OPERATIONS), st.data())
@settings(
    max_examples=REQUESTS,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_is_asked_is_answered_as_the_document_says(client, at, data):
    method, path = at
    document = client("GET", "/v1/openapi.json").json()
    operation = document["paths"][path][method]
    query, headers, body = {}, {}, None
    for one in operation.get("parameters", ()):
        name, value = one["name"], data.draw(texts, label=one["name"])
        if one["in"] == "path":
            # of dots and nothing a client makes another address
            path = path.replace(f"{{{name}}}", quote(value.strip(".") or "0", safe=""))
        elif one["in"] == "query" and data.draw(st.booleans()):
            query[name] = value
        elif one["in"] == "header" and value.isascii() and value.isprintable():
            headers[name] = value.strip()
    if method == "post":
        headers["Content-Type"], body = data.draw(bodies_of(operation))
    how = {"params": query, "headers": headers, "data": body, "allow_redirects": False}
    answer = client(method.upper(), path, **how)
    assert answer.status_code < 500
    told = operation["responses"][str(answer.status_code)].get("content", {})
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    assert kind in told or not answer.content
    if kind.endswith("json"):
        schema = {**told[kind]["schema"], "components": document["components"]}
        jsonschema.validate(answer.json(), schema)

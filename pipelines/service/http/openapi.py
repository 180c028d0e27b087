"""OpenAPI: the calls as a document for programs, and as a page for people."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from streaming_moments.pipelines.service.http.arrow_bodies import STREAM
from streaming_moments.pipelines.service.http.bodies import JSON
from streaming_moments.pipelines.service.http.problems import CONTENT_TYPE, STATUSES
from streaming_moments.pipelines.service.http.routes import CALLS, Call, Parameter
from streaming_moments.pipelines.service.schemas import (
    DocumentSent,
    DocumentsRead,
    DocumentsToForget,
    DocumentsToRead,
    ProblemDetails,
    TextsToRead,
)
from streaming_moments.storage.inbox.records import RecordShape

_SCHEMAS = "#/components/schemas/"
_LINES = "application/x-ndjson"
# HTTP status of a request that is accepted but not yet done; the answer links to its state
_ACCEPTED = 202
# For examples of request bodies: the text in them, and the smallest and the largest number of items
# in a list. A body gets no example if one of its lists needs more items.
_TEXT, _FEW, _LONGEST = "the sea and a ship", 2, 16


def openapi_document(
    shape: RecordShape,
    tokens: bool,
    version: str,
    *,
    texts: bool,
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service.

    shape : fields of a document that is sent to the store of the service
    tokens : whether calls need a token
    version : version of the package
    texts : whether the store counts texts
    """
    calls = CALLS if texts else [_of_documents(call) for call in CALLS]
    kinds = [call.gives for call in calls] + [call.takes for call in calls]
    schemas: dict[str, Any] = {}
    for kind in (*(kind for kind in kinds if is_dataclass(kind)), ProblemDetails):
        schema = TypeAdapter(typing.cast("Any", kind)).json_schema(
            ref_template=f"{_SCHEMAS}{{model}}"
        )
        schemas |= schema.pop("$defs", {})
        name = schema["title"]
        schemas[name] = _described(schema)
    schemas["DocumentSent"] = _document(shape)
    paths: dict[str, Any] = {}
    for call in calls:
        operation = _operation(call, tokens, _example(call, shape))
        paths.setdefault(call.path, {})[call.method.lower()] = operation
    schemes = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "streaming-moments",
            "version": version,
            "description": "Documents in, topics out. Each accepted document is counted exactly "
            "once.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, **({"securitySchemes": schemes} if tokens else {})},
    }


def _operation(call: Call, tokens: bool, example: Any) -> dict[str, Any]:
    of = {"all": True, "tokens": tokens and call.role, "bodies": call.takes}
    refusals = {*call.refusals, *(code for code, one in STATUSES.items() if of.get(one.by))}
    refusals |= {422} if call.of_programs else set()
    operation: dict[str, Any] = {
        "summary": call.says,
        "operationId": f"{call.handler.__module__.rpartition('.')[2]}_{call.handler.__name__}",
        "parameters": [_parameter(one) for one in call.parameters],
        "responses": {
            str(call.status): {"description": "Done.", "content": _content(call.gives)},
            **{str(status): _refusal(status) for status in sorted(refusals)},
        },
    }
    if call.status == _ACCEPTED:
        where = {"description": "Path that shows the state.", "schema": {"type": "string"}}
        operation["responses"][str(call.status)]["headers"] = {"Location": where}
    if call.path == "/readyz":
        operation["responses"]["503"]["content"] = _content(call.gives)
    if call.takes is not None:
        one = {"$ref": f"{_SCHEMAS}{call.takes.__name__}"}
        several = {"type": "array", "items": one, "minItems": 1}
        content: dict[str, Any] = {call.encoding: {"schema": several if call.several else one}}
        if example is not None:
            content[call.encoding]["example"] = example
        if call.several:
            content[_LINES] = {"schema": {"type": "string", "description": "One a line."}}
            if example is not None:
                lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in example)
                content[_LINES]["example"] = lines
            content[STREAM] = {
                "schema": {
                    "type": "string",
                    "description": "Arrow IPC stream, one row per document.",
                }
            }
        operation["requestBody"] = {"required": True, "content": content}
    if tokens and call.role is not None:
        operation["security"] = [{"token": []}]
        operation["description"] = f"Needs a token of role {call.role.name.lower()}."
    return operation


def _content(gives: Any) -> dict[str, Any]:
    if isinstance(gives, str):
        return {gives: {"schema": {"type": "string"}}}
    if isinstance(gives, type):
        return {JSON: {"schema": {"$ref": f"{_SCHEMAS}{gives.__name__}"}}}
    return {JSON: {"schema": {"type": "object"}}}


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": f"{_SCHEMAS}ProblemDetails"}
    found: dict[str, Any] = {"description": STATUSES[status].title}
    found["content"] = {CONTENT_TYPE: {"schema": schema}}
    if STATUSES[status].again:
        told = {"description": "Seconds.", "schema": {"type": "string"}}
        found["headers"] = {"Retry-After": told}
    return found


def _parameter(one: Parameter) -> dict[str, Any]:
    told = {"name": one.name, "in": one.place, "description": one.says, "schema": dict(one.schema)}
    return {**told, "required": one.place == "path"}


def _document(shape: RecordShape) -> dict[str, Any]:
    """Return the JSON Schema of a document of this store."""
    known: dict[str, Any] = {
        "id": {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 1000},
                {"type": ["integer", "null"]},
            ],
            "description": "Names the document for a deletion by id, and for answers. It need not "
            "be unique, and a repeated id counts again: an Idempotency-Key makes a repeated "
            "request safe.",
        },
        "date": {
            "anyOf": [
                {"type": "string", "format": "date"},
                {"type": "string", "format": "date-time"},
                {"type": "null"},
            ],
            "description": "Day of the document; by default the day it arrives.",
        },
    }
    counted = {one.name: dict(one.schema) for one in shape.counted}
    return {
        "type": "object",
        "properties": {**known, **counted},
        "required": list(shape.required),
        "additionalProperties": False,
    }


def _example(call: Call, shape: RecordShape) -> Any:
    """Return an example of the body of a call.

    None if the call takes a form, or if the example would be long.
    """
    fields = {one.name: _value_of(one.schema) for one in shape.counted}
    if any(isinstance(one, list) and len(one) > _LONGEST for one in fields.values()):
        return {DocumentsToForget: {"ids": ["7"]}}.get(call.takes)
    document = {"id": "7", **fields}
    return {
        DocumentSent: [document, {**document, "id": "8"}],
        TextsToRead: {"texts": [_TEXT]},
        DocumentsToRead: {"documents": [fields]},
        DocumentsToForget: {"ids": ["7", "8"]},
    }.get(call.takes)


def _value_of(schema: Mapping[str, Any]) -> Any:
    """Return an example of a value that a field with this schema accepts."""
    if "anyOf" in schema:
        return _value_of(schema["anyOf"][0])
    kinds = schema["type"]
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "array":
        one = _value_of(schema["items"])
        return [one] * max(_FEW, schema.get("minItems", 0))
    return {"string": _TEXT, "number": 0.5, "integer": 3, "boolean": True}[kind]


def _of_documents(call: Call) -> Call:
    """Adapt a call to a store whose documents are not texts."""
    if call.takes is not TextsToRead:
        return call
    return replace(call, takes=DocumentsToRead, gives=DocumentsRead)


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """Shorten the description of a schema, which is a docstring, to its first line."""
    told = str(schema.get("description", "")).strip().splitlines()
    return {**schema, "description": told[0]} if told else schema


def calls_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield method, path and operation of each call in an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation

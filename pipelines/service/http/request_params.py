"""Read values from the parts of a request, and make answers from values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.pipelines.service.http.bodies import JSON, read_body
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.service import Service
from streaming_moments.pipelines.service.tokens import Principal
from streaming_moments.printing.nearest import guess

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_SHOWN = 40
LARGEST = (1 << 53) - 1  # largest whole number of JSON that every parser reads exactly


def principal(request: Request) -> Principal:
    """Return the user who sent the request."""
    found: Principal = request.state.principal
    return found


async def body_of(service: Service, request: Request, most: int | None = None) -> bytes:
    """Read the body, of at most `most` bytes; by default the limit of the service applies.

    The bytes stay counted in the memory budget of the service until the caller of this function
    releases them.
    """
    limits = service.config.limits
    with request.state.door.receiving(request) as share:
        content = await read_body(
            request.stream(),
            request.headers,
            most=limits.body if most is None else most,
            seconds=limits.seconds.total_seconds(),
            budget=share,
        )
        share.came(len(content))
    try:
        # check again how many calls are open, because others may have begun while the body arrived
        request.state.door.require_room()
    except Problem:
        service.budget.give(len(content))
        raise
    return content


def require_known(request: Request, known: Collection[str], repeated: Collection[str]) -> None:
    """Raise a Problem 422 if the query has a parameter that the call does not have.

    A call that ignored a misspelt parameter would answer another question: for example, it would
    return topics of another model. The same holds if a parameter has two values and the call reads
    only one. So only parameters in `repeated` may appear twice.
    """
    for given, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if given not in known:
            name, only = given[:_SHOWN], f"only {', '.join(known)}" if known else "none"
            told = guess(given, known, f"the call takes {only}")
            raise Problem(422, f"there is no parameter {name!r}; {told}", name)
        if times > 1 and given not in repeated:
            raise Problem(422, f"{given} is given {times:,} times; give it once", given)


def flag(request: Request, name: str) -> bool:
    """Return a boolean from the query, by default False; raise a Problem 422 if it is invalid."""
    value = request.query_params.get(name, "false")
    if value.lower() not in _FLAGS:
        raise Problem(422, f"{name} is {value[:_SHOWN]!r}; give true or false", name)
    return _FLAGS[value.lower()]


def number(request: Request, name: str, default: int, most: int) -> int:
    """Return an integer from the query; raise a Problem 422 unless it is between 1 and `most`."""
    value = request.query_params.get(name, str(default))
    digits = value.isascii() and value.isdigit() and len(value) <= len(str(most))
    if not digits or not 1 <= int(value) <= most:
        raise Problem(422, f"{name} is {value[:_SHOWN]!r}; give a number of 1 to {most}", name)
    return int(value)


def named_number(request: Request, name: str) -> int:
    """Return an integer from the path; raise a Problem 404 unless it is at least 0."""
    value: str = request.path_params[name]
    if not (value.isascii() and value.isdigit() and len(value) <= len(str(LARGEST))):
        raise Problem(404, f"there is no {name} {value[:_SHOWN]!r}", name)
    return int(value)


def choice(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """Return one of `choices` from the query, by default the first.

    Raises a Problem 422 for any other value.
    """
    value = request.query_params.get(name, choices[0])
    if value not in choices:
        raise Problem(422, f"{name} is {value[:_SHOWN]!r}; give one of {', '.join(choices)}", name)
    return value


def json_answer(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with JSON; NaN and infinite numbers become null, because JSON lacks them."""
    body = to_json(content, inf_nan_mode="null")
    return Response(body, status, headers, media_type=JSON)

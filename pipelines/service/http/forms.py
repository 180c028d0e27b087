"""Forms of pages, and the check that a page of this service sent them."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request

from streaming_moments.pipelines.service.http.bodies import FORM, other_type
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import body_of, principal

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service

_FEW_BYTES, _FIELDS = 10_000, 10
_FROM = "the form was sent from another site; send it from the page itself"
_FROM_NOWHERE = (
    "the request has no header Origin, which browsers send with a form; open the page in a "
    "browser, and send its form there"
)


async def read_form(service: Service, request: Request, most: int = _FEW_BYTES) -> dict[str, str]:
    """Read the fields of a form; of a repeated field, only the first value.

    Raises a Problem 415 for another content type, 413 for more than `most` bytes, 408 for a slow
    form, and 422 for an invalid one.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise other_type(kind, "the form")
    content = await body_of(service, request, most)
    try:
        text = content.decode("latin-1")
        found = parse_qs(text, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as error:
        raise Problem(422, f"the form is invalid ({error}); send it from its page") from error
    finally:
        service.budget.give(len(content))
    return {name: values[0] for name, values in found.items()}


def form_token(service: Service, request: Request, path: str) -> str:
    """Return a token that a form sent to `path` must contain; only users of our page get it.

    The token is a hash with the credential of the user as its secret, so every instance of the
    service accepts it. If the service needs no credentials, the secret is random and known only to
    this process.
    """
    secret = request.state.credential.encode() or service.secret
    told = f"form\n{principal(request).name}\n{path}"
    return hmac.new(secret, told.encode(), "sha256").hexdigest()


async def own_form(service: Service, request: Request) -> Mapping[str, str]:
    """Read a form that changes the store; raise a Problem 403 if our page did not send it.

    A browser sends a saved password even if another site's page made the request. So the headers of
    the request must name this site, and the form must contain the token from a page of this
    service.
    """
    _require_same_site(request)
    form = await read_form(service, request)
    expected = form_token(service, request, request.url.path)
    if not hmac.compare_digest(form.get("token", "").encode(), expected.encode()):
        raise Problem(
            403, "the form is not from this page or has expired; open the page again", "token"
        )
    return form


def _require_same_site(request: Request) -> None:
    """Raise a Problem 403 unless the browser names this site as the origin of the request.

    Browsers name the origin in headers that a page cannot set.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site != "same-origin":
            raise Problem(403, _FROM, "Sec-Fetch-Site")
        return
    # without TLS browsers do not send `Sec-Fetch-Site`, so compare `Origin` with `Host`
    named = request.headers.get("origin", "")
    if not named:
        raise Problem(403, _FROM_NOWHERE, "Origin")
    origin = urlsplit(named)
    if not origin.netloc or origin.netloc.lower() != request.headers.get("host", "").lower():
        raise Problem(403, _FROM, "Origin")

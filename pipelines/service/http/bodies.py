"""Bodies of requests, read within limits of bytes and time, and the documents in them."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import numpy as np
from pydantic_core import from_json

from streaming_moments.pipelines.quantities import size_text
from streaming_moments.pipelines.service.http.admission import bodies_crowded
from streaming_moments.pipelines.service.http.arrow_bodies import STREAM, documents_of_stream
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.limits import HARMLESS, NESTED, Budget, Share
from streaming_moments.storage.inbox.records import Unreadable

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
_GZIP = 31  # value of `wbits` in zlib for data with a gzip header
_NAME_ENDS = re.compile(rb'"[ \t\n\r]*:')
_SHOWN = 60


def require_json(headers: Mapping[str, str]) -> None:
    """Raise a Problem 415 unless a body is JSON."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise other_type(kind, JSON)


async def read_body(
    stream: AsyncIterator[bytes],
    headers: Mapping[str, str],
    most: int,
    seconds: float,
    budget: Budget | Share,
) -> bytes:
    """Read a body and decompress it; both the sent and the decompressed bytes are at most `most`.

    The whole body must arrive within `seconds`. `headers` have lower-case names. Reserves the
    length of the body in `budget`; the caller releases it. Raises a Problem 413 above the limit,
    415 for another encoding, 400 for damaged gzip, 408 for a slow body, and 503 if the budget is
    used up.
    """
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            415,
            f"the content encoding is {encoding[:40]!r}; send the body plain or as gzip",
            "Content-Encoding",
        )
    said = headers.get("content-length", "")
    if said.isdigit() and int(said) > most:
        raise _too_large(most)
    unpacked = _gunzip(most) if encoding == "gzip" else _plain()
    parts, held, sent = list[bytes](), 0, 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in stream:
                sent += len(chunk)
                part = unpacked(chunk)
                if not budget.take(len(part)):
                    raise bodies_crowded()
                held += len(part)
                parts.append(part)
                if max(held, sent) > most:
                    raise _too_large(most)
        if encoding == "gzip":
            unpacked(b"")
    except BaseException as error:
        budget.give(held)
        if isinstance(error, TimeoutError):
            raise Problem(
                408, f"the body did not arrive within {seconds:g} seconds; send smaller bodies"
            ) from error
        raise
    return b"".join(parts)


def documents_in(content: bytes, content_type: str, most: int) -> Iterator[object]:
    """Yield the documents of a body as JSON values, at most `most`.

    `content_type` is `application/json` for an array, `application/x-ndjson` for an object in each
    line, or `application/vnd.apache.arrow.stream` for rows. Raises a Problem 415 for another type,
    400 for invalid JSON, 422 for JSON that is not an array, and 413 for more documents.

    Examples
    --------
    >>> list(documents_in(b'[{"text": "sea"}]', "application/json; charset=utf-8", 5))
    [{'text': 'sea'}]
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        # do not parse a body that begins with an object: if more lines follow, the parser would
        # report invalid JSON instead of the missing array
        found = None if content.lstrip().startswith(b"{") else _several_in(content, most)
        if not isinstance(found, list):
            text = 'the body is not a JSON array; send [{"text": "..."}, ...]'
            raise Problem(422, f"{text}, or an object in each line as {_LINES[0]}")
        several: Iterator[object] = iter(found)
    elif kind in _LINES:
        several = _of_lines(content, most)
    elif kind == STREAM:
        several = documents_of_stream(content)
    else:
        raise other_type(kind, f"{JSON}, {_LINES[0]} or {STREAM}")
    for number, one in enumerate(several):
        if number == most:
            raise Problem(413, f"the body has more than {most:,} documents; send fewer at once")
        yield one


def json_in(content: bytes, most: int) -> object:
    """Parse a JSON body of at most `most` documents or texts.

    Raises a Problem 400 for invalid JSON, and 413 if it has more lists and objects than `most`
    documents can have.
    """
    found = _several_in(content, most)
    if isinstance(found, Unreadable):
        raise Problem(400, f"the body cannot be read: {found.reason}")
    return found


def _several_in(content: bytes, most: int) -> object:
    """Parse as `json_in`, but put `Unreadable` in place of an object with a repeated name."""
    _require_flat(content, most)
    if not content.strip():
        raise Problem(400, "the body is empty; send JSON")
    try:
        found: object = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise Problem(400, f"the body is {_not_json(content, error)}") from error
    return _named_once(found, content)


def _not_json(content: bytes, error: ValueError) -> str:
    """Say why content is not JSON.

    First checks that it is UTF-8, because the parser would only report invalid characters.
    """
    try:
        content.decode()
    except UnicodeDecodeError as undecoded:
        return f"not UTF-8 (byte {undecoded.start:,}, from 0); convert it to UTF-8"
    one_line = b"\n" not in content
    return f"not JSON ({str(error).replace(' line 1 ', ' ') if one_line else error})"


def _named_once(found: object, content: bytes) -> object:
    """Return the parsed value; put `Unreadable` in place of an object with a repeated name.

    If an object has a name twice, some parsers use its first value, others its last. So the client
    could not know which one is counted.
    """
    several = found if isinstance(found, list) else [found]
    pairs = sum(len(one) for one in several if isinstance(one, dict))
    # the search may find more places than names, because a text may contain a quote and a colon
    if len(_NAME_ENDS.findall(content)) == pairs:
        return found
    checked = json.loads(
        content, object_pairs_hook=_pairs_named_once, parse_int=str, parse_float=str
    )
    if isinstance(found, list):
        return [_unreadable_in(other) or one for one, other in zip(found, checked, strict=True)]
    return _unreadable_in(checked) or found


def _unreadable_in(value: object) -> Unreadable | None:
    if isinstance(value, list):
        return next(filter(None, map(_unreadable_in, value)), None)
    return value if isinstance(value, Unreadable) else None


def _pairs_named_once(pairs: list[tuple[str, object]]) -> Unreadable | None:
    names = set[str]()
    for name, value in pairs:
        if (unreadable := _unreadable_in(value)) is not None:
            return unreadable
        if name in names:
            return Unreadable(f"the name {name[:_SHOWN]!r} appears twice; send it once")
        names.add(name)
    return None


def _require_flat(content: bytes, most: int) -> None:
    """Refuse a body with more lists and objects than allowed: in memory, it would be far larger."""
    allowed = max(NESTED * most, HARMLESS)
    if content.count(b"[") + content.count(b"{") <= allowed:
        return
    bare = np.frombuffer(content.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    in_string = np.logical_xor.accumulate(bare == ord('"'))
    found = np.count_nonzero(((bare == ord("[")) | (bare == ord("{"))) & ~in_string)
    if found > allowed:
        raise Problem(413, f"the body has {found:,} lists and objects; send at most {allowed:,}")


def _of_lines(content: bytes, most: int) -> Iterator[object]:
    _require_flat(content, most)
    start, number = 0, 0
    while start < len(content):
        number += 1
        stop = content.find(b"\n", start)
        stop = len(content) if stop < 0 else stop
        line = content[start:stop].strip()
        start = stop + 1
        if not line:
            continue
        try:
            yield _named_once(from_json(line, allow_inf_nan=False), line)
        except ValueError as error:
            yield Unreadable(f"line {number:,} of the body is {_not_json(line, error)}")


def _plain() -> Callable[[bytes], bytes]:
    return lambda chunk: chunk


def _gunzip(most: int) -> Callable[[bytes], bytes]:
    """Return a function that decompresses the chunks of a body; an empty chunk marks the end.

    `most` is the largest number of decompressed bytes.
    """
    inflating = zlib.decompressobj(_GZIP)
    came = 0

    def unpacked(chunk: bytes) -> bytes:
        nonlocal came
        if not chunk:
            if not inflating.eof:
                raise Problem(400, "the gzip stream ends too early; send all of it")
            return b""
        try:
            found = inflating.decompress(chunk, most - came + 1)
        except zlib.error as error:
            raise Problem(400, f"the body is not gzip ({error})") from error
        came += len(found)
        if came > most or inflating.unconsumed_tail:
            raise _too_large(most)
        if inflating.unused_data:
            raise Problem(400, "the body continues after the gzip stream; send one stream only")
        return found

    return unpacked


def other_type(kind: str, wanted: str) -> Problem:
    """Return the error for a body of a content type that the call does not read."""
    found = f"the content type is {kind[:60]!r}" if kind else "the header Content-Type is missing"
    return Problem(415, f"{found}; send {wanted}", "Content-Type")


def _too_large(most: int) -> Problem:
    return Problem(413, f"the body is above {size_text(most)}; send it in parts")

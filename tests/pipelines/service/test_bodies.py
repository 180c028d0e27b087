"""Bodies of requests: each limit holds to the byte, and whatever is refused is held no more."""

import asyncio
import gzip
import json
import tracemalloc
import zlib

import pytest

from streaming_moments.pipelines.service.http import bodies
from streaming_moments.pipelines.service.http.bodies import documents_in, json_in, read_body
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.limits import Budget
from streaming_moments.storage.inbox.records import Unreadable

MOST, HARMLESS = 100, 200_000
GZIP = {"content-encoding": "gzip"}


def read(chunks, headers=None, budget=None, seconds=30.0):
    async def stream():
        for chunk in chunks:
            if chunk is None:
                await asyncio.sleep(60)
            else:
                yield chunk

    return asyncio.run(read_body(stream(), headers or {}, MOST, seconds, budget or Budget(MOST)))


def named(content, length):
    """Content as gzip, with a name of that length in the header, which is no content."""
    packed = gzip.compress(content)
    return packed[:3] + b"\x08" + packed[4:10] + b"n" * length + b"\0" + packed[10:]


@pytest.mark.parametrize(
    ("chunks", "headers", "status"),
    [
        ([b"x" * 60, b"x" * 41], None, 413),
        ([b"x" * 60, None], None, 408),
        ([gzip.compress(b"x" * 50)[:-4]], GZIP, 400),
        ([gzip.compress(b"x" * 50) + b"y"], GZIP, 400),
        ([gzip.compress(b"x" * 101)], GZIP, 413),
        # what is sent is bounded as well as what it becomes
        ([named(b"x" * 9, MOST)], GZIP, 413),
        ([b"x" * 60, b"x" * 60], None, 503),
    ],
)
def test_what_is_refused_is_held_no_more(chunks, headers, status):
    budget = Budget(MOST if status == 503 else 2 * MOST)
    for _ in range(5):  # of so many the budget would be used up if any were still held
        with pytest.raises(Problem) as refused:
            read(chunks, headers, budget, seconds=0.05 if status == 408 else 30.0)
        assert refused.value.status == status
    assert budget.take(budget.nbytes)


def test_a_body_of_as_many_bytes_as_are_allowed_is_taken_and_held_until_it_is_given_back():
    budget = Budget(MOST)
    assert read([b"x" * 60, b"x" * 40], budget=budget) == b"x" * MOST
    assert not budget.take(1)
    budget.give(MOST)
    assert budget.take(MOST)
    assert read([gzip.compress(b"x" * MOST)], GZIP) == b"x" * MOST
    short = named(b"x" * 9, 0)
    assert read([named(b"x" * 9, MOST - len(short))], GZIP) == b"x" * 9


@pytest.mark.parametrize("one", ["[]", "{}"])
def test_lists_and_objects_are_counted_together_and_not_in_strings(one):
    def body(several, others=0):
        return json.dumps([json.loads(one)] * several + [[]] * others).encode()

    assert len(json_in(body(HARMLESS - 1), 1)) == HARMLESS - 1
    assert len(json_in(body(HARMLESS // 2, HARMLESS // 2 - 1), 1)) == HARMLESS - 1
    for refused in (body(HARMLESS), body(HARMLESS // 2, HARMLESS // 2)):
        with pytest.raises(Problem) as told:
            json_in(refused, 1)
        assert told.value.status == 413
    text = '[{\\"' * HARMLESS
    assert json_in(json.dumps([text]).encode(), 1) == [text]
    # as many lists as are allowed, beside a bracket in a string
    full = json.dumps([[]] * (HARMLESS - 1) + ["["]).encode()
    assert len(json_in(full, 1)) == HARMLESS
    # so many documents may have more
    assert len(json_in(body(HARMLESS), HARMLESS)) == HARMLESS


def test_a_body_is_told_by_its_headers_before_it_is_read():
    budget = Budget(MOST)
    for length, status in (("100", None), ("101", 413), ("x", None)):
        headers = {"content-length": length}
        if status is None:
            assert read([b"a"], headers, budget) == b"a"
            budget.give(1)
            continue
        with pytest.raises(Problem, match="above 100B") as told:
            read([b"a"], headers, budget)
        assert told.value.status == status
    for encoding in (" Identity ", "GZIP"):
        content = gzip.compress(b"a") if "GZIP" in encoding else b"a"
        assert read([content], {"content-encoding": encoding}) == b"a"
    with pytest.raises(Problem) as told:
        read([b"a"], {"content-encoding": "b" * 41})
    assert (told.value.status, told.value.field) == (415, "Content-Encoding")
    assert f"is {'b' * 40!r};" in told.value.detail
    assert budget.take(MOST), "nothing is held"


def test_a_body_for_which_there_is_no_room_may_come_again_in_a_moment():
    with pytest.raises(Problem) as told:
        read([b"a" * 60], budget=Budget(59))
    assert (told.value.status, told.value.retry_after) == (503, 1)
    assert read([b"a" * 60], budget=Budget(60)) == b"a" * 60


def test_a_body_that_comes_too_slowly_is_told_how_long_it_was_waited_for():
    with pytest.raises(Problem, match=r"did not arrive within 0\.05 seconds") as told:
        read([b"a", None], seconds=0.05)
    assert told.value.status == 408


def test_gzip_comes_in_as_many_parts_as_it_may():
    packed = gzip.compress(b"ab" * 50)
    parts = [packed[place : place + 1] for place in range(len(packed))]
    assert read(parts, GZIP, Budget(MOST)) == b"ab" * 50
    for more in ([b"y"], [b"", b"y"]):
        with pytest.raises(Problem, match="after the gzip stream") as told:
            read([*parts, *more], GZIP, Budget(200))
        assert told.value.status == 400
    with pytest.raises(Problem, match=r"is not gzip \(") as told:
        read([b"nonsense"], GZIP)
    assert told.value.status == 400
    with pytest.raises(Problem, match=r"is not gzip \("):
        read([zlib.compress(b"another header")], GZIP)
    long = gzip.compress(bytes(101))
    with pytest.raises(Problem, match="above 100B") as told:
        read([long[:20], long[20:]], GZIP)
    assert told.value.status == 413
    with pytest.raises(Problem, match="ends too early"):
        read([], GZIP)


def test_a_later_part_of_gzip_grows_to_what_is_left_and_no_more():
    most, packing = 1 << 20, zlib.compressobj(wbits=31)
    first = packing.compress(bytes(most)) + packing.flush(zlib.Z_SYNC_FLUSH)
    bomb = packing.compress(bytes(4 * most)) + packing.flush()
    unpacked = bodies._gunzip(most)
    assert len(unpacked(first)) == most
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="above 1MiB"):
            unpacked(bomb)
        assert tracemalloc.get_traced_memory()[1] < most // 2
    finally:
        tracemalloc.stop()


def documents(content, kind="application/json", most=3):
    return list(documents_in(content, kind, most))


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/jsonl; a=b"])
def test_lines_are_documents_and_each_that_is_none_is_so_alone(kind):
    assert documents(b'{"a": 1}\r\n\n  {"a": 2} \n[3]', kind) == [{"a": 1}, {"a": 2}, [3]]
    assert documents(b"", kind) == []
    assert documents(b'\n{"a": 1}\n{"a": 2}', kind) == [{"a": 1}, {"a": 2}]
    first, bad, twice = documents(b'{}\n{"a": NaN}\n{"a": 1, "a": 2}\n', kind)
    assert (first, type(bad), type(twice)) == ({}, Unreadable, Unreadable)
    assert bad.reason.startswith("line 2 of the body is not JSON (expected ")
    assert bad.reason.endswith(" at column 7)")
    assert twice.reason == "the name 'a' appears twice; send it once"


def test_an_empty_body_and_another_encoding_are_named():
    latin = '["caf\xe9"]'.encode("latin-1")
    for content, told in (
        (b" \n", "the body is empty; send JSON"),
        (latin, "the body is not UTF-8 (byte 5, from 0); convert it to UTF-8"),
        (b"[1\n2]", "the body is not JSON (expected `,` or `]` at line 2 column 1)"),
    ):
        with pytest.raises(Problem) as refused:
            documents(content)
        assert (refused.value.status, refused.value.detail) == (400, told)
    # of lines a number is that of the body, blank ones included
    _, bad = documents(b'{}\n\n{"a": "\xe9"}', "application/x-ndjson")
    assert bad.reason == "line 3 of the body is not UTF-8 (byte 7, from 0); convert it to UTF-8"


def test_what_is_no_array_or_of_another_type_is_refused():
    for content in (b"{}", b'"a"', b"null", b' {"text": "a"}\n{"text": "b"}\n'):
        with pytest.raises(
            Problem, match=r"JSON array; .* in each line as application/x-nd"
        ) as told:
            documents(content)
        assert told.value.status == 422
    with pytest.raises(Problem, match="the header Content-Type is missing; send application/json"):
        documents(b"[]", "")
    with pytest.raises(Problem, match=r"the body is not JSON \(") as told:
        documents(b"[NaN]")
    assert told.value.status == 400
    with pytest.raises(Problem) as told:
        documents(b"[]", "a" * 61)
    assert (told.value.status, told.value.field) == (415, "Content-Type")
    assert told.value.detail == (
        f"the content type is {'a' * 60!r}; send application/json, application/x-ndjson or "
        "application/vnd.apache.arrow.stream"
    )


def test_as_many_documents_as_are_allowed():
    assert documents(b"[1, 2, 3]", " Application/JSON ;x") == [1, 2, 3]
    with pytest.raises(Problem, match="more than 3 documents") as told:
        documents(b"[1, 2, 3, 4]")
    assert told.value.status == 413


def test_a_name_that_is_there_twice_is_told_wherever_it_is():
    name = "n" * 61
    body = f'[{{"a": [{{"b": {{"{name}": 1, "{name}": 2}}}}]}}, {{"a": 1}}]'.encode()
    bad, good = documents(body)
    assert good == {"a": 1}
    assert bad.reason == f"the name {'n' * 60!r} appears twice; send it once"
    # an array whose texts hold what looks like names is parsed again, and stays as it was
    text = '": ": "'
    several = [{"a": text, "b": [1.5, 10**30]}]
    assert documents(json.dumps(several).encode()) == several
    assert json_in(json.dumps({"a": text}).encode(), 1) == {"a": text}
    with pytest.raises(Problem, match="cannot be read: the name 'a' appears twice") as told:
        json_in(b'{"a": 1, "a": 2}', 1)
    assert told.value.status == 400


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_so_many_lists_and_objects_are_allowed_for_each_document(kind):
    most = 10_001  # of which the allowance is above that of every body
    allowed = 20 * most

    def body(several):
        inner = b"{}," * (several // 2) + b"[]," * (several - several // 2)
        return b"[" + inner[:-1] + b"]"

    assert next(documents_in(body(allowed - 1), kind, most)) in ({}, json.loads(body(allowed - 1)))
    with pytest.raises(Problem, match=rf"has {allowed + 1:,} lists .* at most {allowed:,}") as told:
        documents(body(allowed), kind, most)
    assert told.value.status == 413

"""Bodies of requests: each limit holds to the byte, and whatever is refused is held no more."""

import asyncio
import gzip
import json

import pytest

from streaming_moments.pipelines.service.budget import Budget
from streaming_moments.pipelines.service.http.bodies import json_in, read_body
from streaming_moments.pipelines.service.http.problems import Problem

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

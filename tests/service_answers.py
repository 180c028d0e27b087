"""Turns of the counting process, and answers of the service."""

import time


def due(accumulator, failing=False):
    """Return a turn once pending documents are old enough; its failures are raised."""
    deadline = time.monotonic() + 60
    while (turn := accumulator.look()) is None:
        assert time.monotonic() < deadline
    for _, error in () if failing else turn.failed:
        raise error
    return turn


def problem(answer, status):
    """Return the body of an answer with this status."""
    assert answer.status == status, answer.text
    return answer.json()

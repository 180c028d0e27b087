"""Exchange of rows of sums between workers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from distributed import Worker
from distributed.comm.addressing import get_address_host_port
from distributed.comm.core import Comm, connect
from distributed.core import send_recv
from numpy.typing import NDArray

TAKE = "streaming_moments_take"
REDUCE = "streaming_moments_reduce"
MESSAGE_BYTES = 16 << 20  # most bytes of rows in one message
# Seconds of the first attempt to connect. Within this time a live worker usually answers, or the
# operating system reports a closed port.
_SOON_SECONDS = 0.2
# Seconds of the second attempt. A live worker answers well within this time, and a longer wait
# would only retry a dead worker.
_CONNECT_SECONDS = 4.0
_MESSAGE_SECONDS = 120.0

Source = tuple[str, str]  # address of a worker, and the token of its frozen sums


class SumsLost(Exception):
    """Sums of a worker are lost, usually because the worker died."""


def ring_from(sources: Sequence[Source], address: str) -> tuple[Source | None, list[Source]]:
    """Return the source at an address (None if it is missing), and the other sources.

    The other sources begin after that source and continue from the front of the list.

    Examples
    --------
    >>> ring_from([("a", "1"), ("b", "2"), ("c", "3")], "b")
    (('b', '2'), [('c', '3'), ('a', '1')])
    """
    addresses = [source[0] for source in sources]
    if address not in addresses:
        return None, list(sources)
    here = addresses.index(address)
    return sources[here], [*sources[here + 1 :], *sources[:here]]


async def add_theirs(
    worker: Worker,
    address: str,
    asked: Mapping[str, Any],
    first: int,
    sums: Mapping[str, NDArray[np.int64]],
    patience: int = 1,
) -> None:
    """Fetch rows from another worker and add them to `sums`, one message at a time.

    asked : the message (`op` and its arguments) without `start` and `stop`
    first : first row of the block to fetch; it is added to row 0 of `sums`
    patience : allow this many times the usual time for an answer, because the other worker may
        have to finish that many answers first

    Raises SumsLost if the other worker, or its sums, are lost.
    """
    rows = max(len(array) for array in sums.values())
    nbytes = sum(array.nbytes for array in sums.values())
    step = max(1, rows * MESSAGE_BYTES // max(nbytes, 1))
    try:
        # limit the time of each message here, because Dask only limits the time to connect
        comm = await asyncio.wait_for(_dialled(worker, address), _MESSAGE_SECONDS)
        try:
            for begin in range(0, rows, step):
                end = min(begin + step, rows)
                span: Any = {**asked, "start": first + begin, "stop": first + end}
                answer = await asyncio.wait_for(
                    send_recv(comm, **span), patience * _MESSAGE_SECONDS
                )
                if answer is None:
                    raise SumsLost(address)
                for name, part in answer.items():
                    into = sums[name][begin:end]
                    np.add(into, part, out=into)
        finally:
            comm.abort()
    except (OSError, TimeoutError) as error:
        raise SumsLost(address) from error


async def _dialled(worker: Worker, address: str) -> Comm:
    """Connect to another worker; fail at once if its port is closed, although Dask would retry."""
    security: Any = worker.security.get_connection_args("worker")
    try:
        comm: Comm = await connect(address, timeout=_SOON_SECONDS, **security)
    except OSError:
        if await _refuses(address):
            raise
        comm = await connect(address, timeout=_CONNECT_SECONDS, **security)
    return comm


async def _refuses(address: str) -> bool:
    """Whether the system reports a closed port, as after the death of a process."""
    if not address.startswith(("tcp://", "tls://")):
        return False
    try:
        opened = asyncio.open_connection(*get_address_host_port(address))
        _, writer = await asyncio.wait_for(opened, _SOON_SECONDS)
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    writer.close()
    return False

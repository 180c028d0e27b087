"""Read the rest of a request after the answer is sent, so that the client gets the answer.

If a server closes a connection on which it has not read all bytes, its operating system resets the
connection. The client's operating system then drops the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

# key that marks the ASGI scope of an answered request whose body is still being read
LINGERS = "lingers"
_CLOSES = (b"connection", b"close")
_TIMES = 4  # at most this many times the bytes of the largest accepted body are read
_SILENT = 2.0  # reading stops if the client sends no byte for this many seconds


@dataclass(frozen=True)
class Lingering:
    """Application that reads and drops the rest of a request after it has sent the whole answer.

    body : number of bytes of the largest accepted body; the connection closes after four times as
        many
    seconds : time after which the connection closes; it closes earlier if the client sends nothing
        for 2 seconds
    """

    app: App
    body: int
    seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        read, closes, unfinished = False, _CLOSES in scope["headers"], False

        async def received() -> Message:
            nonlocal read
            message = await receive()
            read = not message.get("more_body", False)
            return message

        async def sent(message: Message) -> None:
            nonlocal closes, unfinished
            if message["type"] == "http.response.start":
                closes = closes or _CLOSES in message["headers"]
            elif closes and not read and not message.get("more_body", False):
                # Announce more content, so that the connection stays open. The client takes the
                # answer as complete, because a header had the length of the answer.
                message, unfinished = {**message, "more_body": True}, True
            await send(message)

        await self.app(scope, received, sent)
        if unfinished:
            scope[LINGERS] = True
            await self._drop(received)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _drop(self, receive: Receive) -> None:
        """Read and drop the rest of a request, until a limit on bytes or seconds is reached."""
        left, more = _TIMES * self.body, True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.seconds):
                while more and left > 0:
                    async with asyncio.timeout(_SILENT):
                        message = await receive()
                    left -= len(message.get("body", b""))
                    more = message.get("more_body", False)

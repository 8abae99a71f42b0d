"""What was asked before the client closed its end is answered; of itself, the SDK ends at once.
What the SDK cannot read is refused, or left out of a list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from kb.serve.client_roots import leave_out_unknown
from kb.serve.unreadable import refusals

LAST_SECONDS = 10.0
"""After the last message of a client, for the answers that it waits for."""
_LOOK_SECONDS = 0.02

Reading = MemoryObjectReceiveStream[SessionMessage | Exception]
Writing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def answered_to_the_last(
    reading: ObjectReceiveStream[SessionMessage | Exception],
    writing: ObjectSendStream[SessionMessage],
) -> AsyncIterator[tuple[Reading, Writing]]:
    """The streams of a client as a server should have them: what comes in ends when all that was
    asked is answered."""
    into, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, out = anyio.create_memory_object_stream[SessionMessage]()
    refused = answers.clone()
    waiting: set[RequestId] = set()

    async def take_in() -> None:
        async with into, refused:
            async for one in reading:
                if (answers_to_it := refusals(one)) is not None:
                    for answer in answers_to_it:
                        await refused.send(answer)
                    continue
                leave_out_unknown(one)
                _note_call(one, waiting)
                await into.send(one)
            with anyio.move_on_after(LAST_SECONDS):
                while waiting:
                    await anyio.sleep(_LOOK_SECONDS)

    async def give_out() -> None:
        async with writing:
            async for one in out:
                await writing.send(one)
                match one.message:
                    case (
                        JSONRPCResponse(id=identifier)
                        | JSONRPCError(id=str() | int() as identifier)
                    ):
                        waiting.discard(identifier)

    async with anyio.create_task_group() as relays, received, out:
        relays.start_soon(take_in)
        relays.start_soon(give_out)
        async with answers:
            yield received, answers


def _note_call(one: SessionMessage | Exception, waiting: set[RequestId]) -> None:
    match one:
        case SessionMessage(message=JSONRPCRequest(id=identifier)):
            waiting.add(identifier)
        case SessionMessage(
            message=JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": str() | int() as identifier}
            )
        ):
            waiting.discard(identifier)

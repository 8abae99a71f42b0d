"""`POST /v1/chat`: one message to a case, and the reply to it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kb.conversation import Conversation, greet, leave_empty
from kb.evidence.secrets import blank_secrets
from kb.log import Log
from kb.log.clean import replace_surrogates
from kb.serve.bodies import read_json
from kb.serve.respond import json_response
from kb.serve.talks import Talks, check_fits, new_id
from kb.serve.turns import Turns
from kb.service.reply import Reply, to_reply
from kb.service.service import DEFAULT_MATCHES

_NO_LOG = Log.from_text("")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message."""

    text: str
    case: Annotated[
        Annotated[str, msgspec.Meta(max_length=64)] | None,
        msgspec.Meta(description="The case of an earlier reply; without it, a new one begins."),
    ] = None


class CaseReply(Reply, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reply to one message."""

    case: Annotated[str, msgspec.Meta(description="To be sent with the next message.")]


class Chat:
    """Answers messages."""

    def __init__(self, turns: Turns, talks: Talks) -> None:
        self._turns = turns
        self._talks = talks

    async def reply(self, request: Request) -> Response:
        """The reply to a message; what could not be answered is not kept."""
        message = await read_json(request, Message)
        text = replace_surrogates(blank_secrets(message.text))
        case = message.case or new_id()
        said = await asyncio.to_thread(self._talks.messages, case) if message.case else []
        check_fits(said, text)
        before = self._talks.live(case, len(said)) or await self._again(request, said)
        after = await self._said(request, before, text)
        find = partial(self._turns.service.next_check, after)
        step = await self._turns.ask(request, find)
        reply = await self._turns.write(lambda: to_reply(after, before, step))
        await asyncio.to_thread(self._talks.add, case, said, text)
        self._talks.remember(case, len(said) + 1, after)
        return json_response(CaseReply(**msgspec.structs.asdict(reply), case=case))

    async def _again(self, request: Request, said: list[str]) -> Conversation:
        """The conversation after what was said."""
        nothing = await self._turns.diagnose(request, lambda: _NO_LOG, DEFAULT_MATCHES)
        conversation = greet(nothing)
        for text in said:
            conversation = await self._said(request, conversation, text)
        return conversation

    async def _said(self, request: Request, before: Conversation, text: str) -> Conversation:
        reply = partial(self._turns.service.reply, before, text)
        after = await self._turns.ask(request, reply)
        return leave_empty(before) if after is before else after

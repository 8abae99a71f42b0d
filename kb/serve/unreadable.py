"""Calls that the SDK does not read. It would answer none of them, and the client wait for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)

from kb.log.clean import replace_surrogates

_STAND_IN = "(unreadable)"
"""The method of what is read in the place of such a call: it has the ids under which to refuse."""
_SENTENCE = (
    "the call cannot be read; send one JSON object in a line, with `jsonrpc`, `id`, `method`, and"
    " `params` as an object"
)
_IDENTIFIER = re.compile(rb'"id"\s{0,9}:\s{0,9}(\d{1,18}|"[\w-]{1,100}")\s{0,9}[,}]')
_END_BYTES = 300
"""Of a call, at its beginning and at its end, where its id stands beside the arguments."""


def readable(line: str) -> str:
    """A message that the SDK reads, in the place of one that it would not: the same one, where only
    its signs are odd."""
    if not line.strip() or _is_message(line):
        return line
    try:
        message = json.loads(line, strict=False)  # with control characters in texts
        written = replace_surrogates(json.dumps(message, ensure_ascii=False))
    except (ValueError, RecursionError):
        return to_refuse([identifier(line.encode(), line.encode())], PARSE_ERROR)
    return written if _is_message(written) else to_refuse([*_identifiers(message)])


def to_refuse(identifiers: Sequence[RequestId | None], code: int = INVALID_REQUEST) -> str:
    """What stands in the place of a call that cannot be read; None is an id that cannot be."""
    told = {"identifiers": identifiers, "code": code}
    message = {"jsonrpc": "2.0", "method": _STAND_IN, "params": told}
    return replace_surrogates(json.dumps(message, ensure_ascii=False))


def refusals(one: SessionMessage | Exception) -> list[SessionMessage] | None:
    """The answers to a call that could not be read; None for any other message."""
    match one:
        case SessionMessage(
            message=JSONRPCNotification(
                method=method,
                params={"identifiers": list() as identifiers, "code": int() as code},
            )
        ) if method == _STAND_IN:
            error = ErrorData(code=code, message=_SENTENCE)
            return [
                SessionMessage(JSONRPCError(jsonrpc="2.0", id=_sound(found), error=error))
                for found in identifiers
            ]
    return None


def identifier(beginning: bytes, end: bytes) -> RequestId | None:
    """The id of a call, of which the rest cannot be read."""
    found = (
        _IDENTIFIER.findall(beginning[:_END_BYTES])[:1]
        or _IDENTIFIER.findall(end[-_END_BYTES:])[-1:]
    )
    return _sound(json.loads(found[0])) if found else None


def _is_message(line: str) -> bool:
    """Whether the SDK reads it as what it is: with an id that is none, it takes a call for one that
    waits for no answer."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return False
    return not isinstance(message, JSONRPCNotification) or "id" not in json.loads(line)


def _identifiers(message: Any) -> Iterator[RequestId | None]:
    """Of the calls in a message; what is only told, and what is an answer, is not answered."""
    calls = message if isinstance(message, list) and message else [message]
    for call in calls:
        if not isinstance(call, dict):
            yield None
        elif "id" in call if "method" in call else not call.keys() & {"result", "error"}:
            yield _sound(call.get("id"))


def _sound(value: Any) -> RequestId | None:
    """An id as one may be; `7.0` is 7."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None

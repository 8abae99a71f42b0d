"""Values to answers."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from kb.log.clean import escape_controls


def json_response(value: object) -> Response:
    """What msgspec can encode, on one line."""
    return Response(to_line(value), media_type="application/json")


def to_line(value: object) -> str:
    """As JSON in which no control character stands."""
    return escape_controls(msgspec.json.encode(value).decode())

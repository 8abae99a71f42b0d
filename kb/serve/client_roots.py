"""The roots that a client announces. Of a list that holds one that is none to it, as the folder of
an editor on another machine, the SDK would read nothing."""

from __future__ import annotations

from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse, Root


def leave_out_unknown(one: SessionMessage | Exception) -> None:
    """Leave out of a message the roots that the SDK does not read."""
    match one:
        case SessionMessage(message=JSONRPCResponse(result={"roots": list() as told})):
            _keep_known(told)
        case SessionMessage(
            message=JSONRPCRequest(params={"inputResponses": {"roots": {"roots": list() as told}}})
        ):
            _keep_known(told)


def _keep_known(roots: list[Any]) -> None:
    roots[:] = filter(_is_known, roots)


def _is_known(root: Any) -> bool:
    try:
        Root.model_validate(root, by_name=False)
    except ValueError:
        return False
    return True

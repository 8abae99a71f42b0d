"""The description of the API, from the types that are sent and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kb import __version__
from kb.classify.result import ResultRow, Unreadable
from kb.incident import Kind
from kb.serve.alerts import AlertAnswers, Notification
from kb.serve.bodies import Asked
from kb.serve.chat import CaseReply, Message
from kb.serve.diagnoses import MAX_TOP, UNITS
from kb.serve.library import Rows, WholeRecord
from kb.serve.refusal import Problem
from kb.service.service import DEFAULT_MATCHES
from kb.service.wire import Answer

_JSON = "application/json"
_ROWS = "application/x-ndjson"
_REF = "#/components/schemas/{name}"
_TYPES: Sequence[type] = (
    Answer,
    AlertAnswers,
    Asked,
    CaseReply,
    Message,
    Notification,
    Problem,
    ResultRow,
    Rows,
    Unreadable,
    WholeRecord,
)
_PROBLEMS = {
    "400": "The request is wrong.",
    "401": "No valid token.",
    "403": "Asked for by another site, or under another name.",
    "404": "There is nothing of this name.",
    "408": "The body did not arrive in time.",
    "409": "Another message came first.",
    "413": "The body is too large.",
    "415": "The body has an unknown type.",
    "422": "The log cannot be read.",
    "429": "Too many requests; see Retry-After.",
    "502": "The chat did not take the message.",
    "503": "Too busy, or not ready; see Retry-After.",
}
_FILES = {
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "properties": {
                "logs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "string", "format": "binary"},
                }
            },
            "required": ["logs"],
        }
    }
}
_UPLOADS = {
    _JSON: {"schema": {"$ref": _REF.format(name="Asked")}},
    "text/plain": {"schema": {"type": "string"}},
    **_FILES,
}


def description() -> dict[str, Any]:
    """OpenAPI 3.1."""
    _schemas, components = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "incident-kb",
            "version": __version__,
            "description": "Diagnoses of failures on GPU clusters, from reviewed records.",
        },
        "paths": _paths(),
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _paths() -> dict[str, Any]:
    top = _parameter(
        "top", {"type": "integer", "minimum": 1, "maximum": MAX_TOP, "default": DEFAULT_MATCHES}
    )
    unit = _parameter("unit", {"enum": list(UNITS), "default": UNITS[0]})
    kind = _parameter("kind", {"enum": [kind.value for kind in Kind]})
    words = _parameter("q", {"type": "string", "maxLength": 400})
    identifier = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    rows = {"anyOf": [{"$ref": _REF.format(name=name)} for name in ("ResultRow", "Unreadable")]}
    return {
        "/v1/diagnose": {
            "post": _operation("Diagnose a log, or all logs of one job.", "Answer", [top], _UPLOADS)
        },
        "/v1/chat": {
            "post": _operation("Send a message to a case.", "CaseReply", [], _json("Message"))
        },
        "/v1/classify": {
            "post": _operation(
                "Diagnose many logs: one row of JSON for each, as soon as it is known.",
                {_ROWS: {"schema": rows}},
                [unit],
                _FILES,
            )
        },
        "/v1/alerts": {
            "post": _operation(
                "Diagnose alerts, as Alertmanager sends them.",
                "AlertAnswers",
                [],
                _json("Notification"),
            )
        },
        "/v1/records": {"get": _operation("List the records.", "Rows", [kind])},
        "/v1/records/{id}": {"get": _operation("Read one record.", "WholeRecord", [identifier])},
        "/v1/search": {"get": _operation("Find records by a few words.", "Rows", [words])},
    }


def _operation(
    summary: str,
    answer: str | dict[str, Any],
    parameters: list[dict[str, Any]],
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    content = _json(answer) if isinstance(answer, str) else answer
    problems = {
        status: {"description": text, "content": _json("Problem")}
        for status, text in _PROBLEMS.items()
    }
    described = {
        "summary": summary,
        "parameters": parameters,
        "responses": {"200": {"description": "The answer.", "content": content}, **problems},
    }
    return described | ({"requestBody": {"required": True, "content": body}} if body else {})


def _json(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": _REF.format(name=name)}}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}

"""The stable JSON of a diagnosis, described by docs/ask.schema.json."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kb.diagnosis import Diagnosis, Match, Note, Why
from kb.incident import Step
from kb.job import Job
from kb.log.clean import escape_controls

SCHEMA = 1
"""Grows when a key is removed or changes its meaning."""


def to_json(diagnosis: Diagnosis) -> str:
    """Return one JSON object, indented."""
    return indented(to_object(diagnosis))


def indented(value: object) -> str:
    """Return what msgspec can encode as JSON for people and terminals."""
    return escape_controls(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def to_object(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the object that `to_json` writes."""
    return {
        "schema": SCHEMA,
        "verdict": diagnosis.verdict,
        "matches": [_match(match) for match in diagnosis.matches],
        "notes": [_note(note) for note in diagnosis.notes],
        "question": diagnosis.question and msgspec.to_builtins(diagnosis.question),
        "job": diagnosis.job and _job(diagnosis.job),
        "facts": msgspec.to_builtins(diagnosis.evidence.facts),
        "elapsed_ms": round(diagnosis.elapsed_ms, 1),
    }


def _job(job: Job) -> dict[str, Any]:
    keys = ("failed", "kind", "world_size", "culprits", "cascade", "others", "timeline", "earlier")
    told: dict[str, Any] = msgspec.to_builtins(job)
    return {key: told[key] for key in (*keys, "finding")}


def _match(match: Match) -> dict[str, Any]:
    header, body = match.incident.header, match.incident.body
    return {
        "id": header.id,
        "title": header.title,
        "confidence": match.confidence,
        "caution": header.caution,
        "systems": list(header.systems),
        "why": _why(match.why),
        "fix": [_step(step) for step in body.fix],
        "verify": body.verify,
        "references": list(header.references),
    }


def _note(note: Note) -> dict[str, Any]:
    header = note.incident.header
    return {"id": header.id, "kind": header.kind, "title": header.title, "why": _why(note.why)}


def _why(lines: Iterable[Why]) -> list[dict[str, Any]]:
    return [
        {"file": why.line.file, "line": why.line.number, "text": why.line.text, "by": why.by}
        for why in lines
    ]


def _step(step: Step) -> dict[str, str | None]:
    return {"step": step.text, "command": step.command, "why": step.why}

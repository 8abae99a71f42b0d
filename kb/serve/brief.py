"""A diagnosis that is short enough for a model: the keys of `kb ask --json`, fewer and shorter
values. What is left out is named, so that it can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from kb.service.wire import Answer, WireLead, WireMatch, WireNext, WirePlaybook, WireStep, WireWhy

MAX_TOKENS = 1_500
"""Of an answer, so that an agent can afford one at every turn."""
BYTES_A_TOKEN = 3
"""Of JSON in UTF-8. The tokenizer of GPT-2 takes 3.3 bytes of such answers as one, and later ones
take more, so this counts too many rather than too few."""

Value = Mapping[str, Any]


class Room(msgspec.Struct, frozen=True):
    """How much of an answer is told."""

    matches: int
    """Those behind the first one are named only."""
    steps: int
    """Of the fix of the first match."""
    lines: int
    """Of evidence, of observations, of findings."""
    characters: int
    """Of a text. A command is whole or left out."""


_ROOMS = (
    Room(matches=4, steps=8, lines=4, characters=300),
    Room(matches=3, steps=6, lines=3, characters=200),
    Room(matches=3, steps=4, lines=2, characters=140),
    Room(matches=2, steps=2, lines=1, characters=100),
    Room(matches=1, steps=1, lines=1, characters=60),
)
"""From generous to what always fits."""


def tokens(value: object) -> int:
    """How many a value counts as, as JSON."""
    return -(-len(msgspec.json.encode(value)) // BYTES_A_TOKEN)


def fitted(tell: Callable[[Room], Value]) -> Value:
    """The most generous telling within the budget; without what is empty."""
    told: Value = {}
    for room in _ROOMS:
        told = {name: value for name, value in tell(room).items() if value not in (None, [], "")}
        if tokens(told) <= MAX_TOKENS:
            break
    return told


def shortened(text: str | None, room: Room) -> str | None:
    """The beginning of a text."""
    if text is None or len(text) <= room.characters:
        return text
    return f"{text[: room.characters].rstrip()} ..."


def brief(answer: Answer, room: Room) -> Value:
    """The answer, with the names of its parts of which there is more."""
    lead = answer.playbooks[:1] if answer.playbooks and not _is_match(answer) else []
    return {
        "verdict": answer.verdict,
        "matches": [
            *(_first(match, room) for match in answer.matches[:1]),
            *(_named(match, room) for match in answer.matches[1 : room.matches]),
        ],
        "notes": [
            {"id": note.id, "kind": note.kind, "title": shortened(note.title, room)}
            for note in answer.notes[: room.lines]
        ],
        "observations": [
            {
                "check": seen.check,
                "text": shortened(seen.text, room),
                **_place(seen.file, seen.line),
            }
            | {"abnormal": seen.abnormal}
            for seen in answer.observations[: room.lines]
        ],
        "playbooks": [_playbook(playbook, room) for playbook in lead],
        "leads": [brief_lead(lead, room) for lead in answer.leads[: room.lines]],
        "next": brief_next(answer.next, room),
        "question": msgspec.to_builtins(answer.question),
        "job": _job(answer, room),
        "cut": [*_parts_with_more(answer, room)],
    }


def brief_next(step: WireNext | None, room: Room) -> Value | None:
    """The check to run, with its command whole."""
    if step is None:
        return None
    return {
        "check": step.check,
        "command": step.command,
        "where": shortened(step.where, room),
        "risk": step.risk,
        "why": shortened(step.why, room),
        "cite": f"check://{step.check}#Commands",
    }


def brief_lead(lead: WireLead, room: Room) -> Value:
    """A report of the team's own, whose words are quoted and were reviewed by nobody."""
    return {
        "id": lead.id,
        "title": shortened(lead.title, room),
        "score": round(lead.score, 2),
        "fix": shortened(lead.fix, room),
        "reviewed": False,
        "cite": lead.url or f"{lead.backlog}: {lead.source}",
    }


def _is_match(answer: Answer) -> bool:
    return answer.verdict == "match"


def _first(match: WireMatch, room: Room) -> Value:
    return {
        **_named(match, room),
        "caution": shortened(match.caution, room),
        "why": [_why(why, room) for why in match.why[: room.lines]],
        "fix": [brief_step(step, room) for step in match.fix[: room.steps]],
        "verify": shortened(match.verify, room),
        "cite": f"incident://{match.id}#Fix",
    }


def _named(match: WireMatch, room: Room) -> Value:
    title = shortened(match.title, room)
    return {"id": match.id, "title": title, "confidence": round(match.confidence, 2)}


def _why(why: WireWhy, room: Room) -> Value:
    return {**_place(why.file, why.line), "text": shortened(why.text, room), "by": why.by}


def _place(file: str | None, line: int) -> Value:
    return {"file": file, "line": line} if file else {"line": line}


def brief_step(step: WireStep, room: Room) -> Value:
    """A step of a fix, with its command whole or not at all."""
    told: dict[str, Any] = {"step": shortened(step.step, room)}
    if step.command is not None:
        whole = len(step.command) <= 2 * room.characters
        told["command"] = step.command if whole else "(see get_record)"
    return told


def _playbook(playbook: WirePlaybook, room: Room) -> Value:
    return {
        "id": playbook.id,
        "title": shortened(playbook.title, room),
        "confidence": round(playbook.confidence, 2),
        "secure": [shortened(text, room) for text in playbook.secure[: room.lines]],
        "cite": f"playbook://{playbook.id}#Causes",
    }


def _job(answer: Answer, room: Room) -> Value | None:
    job = answer.job
    if job is None:
        return None
    return {
        "finding": shortened(job.finding, room),
        "culprits": [
            {"rank": one.rank, "host": one.host, "file": one.file, "line": one.line}
            | {"text": shortened(one.text, room)}
            for one in job.culprits[: room.lines]
        ],
    }


def _parts_with_more(answer: Answer, room: Room) -> Iterator[str]:
    """Names of parts; the first match is told with less than it has."""
    if answer.matches:
        yield "matches"
    told = {"notes": room.lines, "observations": room.lines, "playbooks": 1, "leads": 0}
    for part, most in told.items():
        if len(getattr(answer, part)) > most:
            yield part
    if answer.job:
        yield "job"
    yield "facts"


def page(answer: Answer, part: str, start: int) -> Value:
    """The items of one part, whole, from one on, as far as they fit; at least one."""
    value = msgspec.to_builtins(getattr(answer, part))
    items = value if isinstance(value, list) else [value]
    shown: list[Any] = []
    for item in items[start:]:
        if shown and tokens([*shown, item]) > MAX_TOKENS:
            break
        shown.append(item)
    return {"part": part, "start": start, "of": len(items), "items": shown}

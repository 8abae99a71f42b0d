"""What the tools for agents answer: each takes its arguments and gives text for a model. Knows
nothing of a protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from kb.check import Finding
from kb.checks import Observation
from kb.conversation import Conversation, begin
from kb.diagnosis import Diagnosis, NextCheck, without_incident
from kb.diagnosis.find import FoundRecord
from kb.errors import KbError, LogError, unknown
from kb.evidence.secrets import blank_secrets, without_secrets
from kb.guides import Record
from kb.incident import Incident, Kind
from kb.log import Log
from kb.log.clean import drop_controls, escape_controls, replace_surrogates
from kb.markdown import render
from kb.serve.brief import (
    Room,
    Value,
    brief,
    brief_lead,
    brief_next,
    brief_step,
    fitted,
    page,
    shortened,
)
from kb.serve.cases import Case, Cases, SharedCases
from kb.serve.roots import open_below
from kb.serve.tools import (
    LEAD,
    Arguments,
    Diagnose,
    DraftRecord,
    GetRecord,
    ReadOutput,
    Search,
)
from kb.serve.tools import (
    NextCheck as NextCheckCall,
)
from kb.service.service import DEFAULT_MATCHES, Service, SupersededError
from kb.service.wire import (
    to_answer,
    to_lead,
    to_next,
    to_observation,
    to_step,
    with_whole_keys_masked,
)
from kb.verdict import Verdict

if TYPE_CHECKING:
    from kb.serve.talks import Talks

Result = TypeVar("Result")
Roots = Sequence[Path]

_CANDIDATES = "Candidates only: no record is above the bar. Check before you act."
_NO_OUTPUT = (
    "No known check printed this, so nothing is read from it. If it is a log, call diagnose; search"
    " with kind check lists the checks."
)
_NO_FAULT = "Recognised; no known fault is in it."
_MATCHED = "A record matches: its fix is the next step."
_NO_CHECK = (
    "No check is known that would change what to do. Hand over what is known; draft_record drafts a"
    " record of it."
)


class Desk:
    """Answers the tools from one service. Its cases are those of all its clients; a handle is known
    only to whom it was given."""

    def __init__(self, service: Service, talks: Talks | None = None) -> None:
        """With `talks`, other processes know the same cases."""
        self._service = service
        self._cases = SharedCases(talks, self._again) if talks else Cases()
        self._answers: dict[type[Arguments], Callable[[Any, Roots], Awaitable[str]]] = {
            Diagnose: self._diagnose,
            ReadOutput: self._read_output,
            NextCheckCall: self._next_check,
            Search: self._search,
            GetRecord: self._get_record,
            DraftRecord: self._draft_record,
        }

    async def answer(self, arguments: Arguments, roots: Roots) -> str:
        """The answer to a call; files are read below the roots only.

        Raises:
            KbError: with one sentence on what was wrong.
        """
        try:
            return await self._answers[type(arguments)](arguments, roots)
        except SupersededError:
            raise KbError("the server ends; call again once it is back") from None

    async def record(self, identifier: str, section: str = "") -> str:
        """A record as Markdown, or one section of it.

        Raises:
            CorpusError: there is no such record.
            KbError: it has no such section.
        """
        record = await _result(self._service.record(_text(identifier)))
        markdown = drop_controls(without_secrets(render(record)))
        return _section(markdown, record, section) if section else markdown

    async def _diagnose(self, call: Diagnose, roots: Roots) -> str:
        if call.part:
            case = await self._cases.find(call.case)
            return _json(page(case.answer, call.part, call.start))
        if call.case:
            raise KbError("case goes with part; for a new log leave case out")
        diagnosis = await self._diagnosed(call.text, call.paths, roots)
        answer = to_answer(diagnosis)
        handle = await self._cases.keep(Case(answer, begin(diagnosis), [_text(call.text)]))
        says = _in_a_sentence(diagnosis)
        notices = without_secrets(diagnosis.notices)
        return _json(
            fitted(
                lambda room: {
                    "case": handle,
                    "says": says,
                    **brief(answer, room),
                    "notices": [shortened(one, room) for one in notices[: room.lines]],
                }
            )
        )

    async def _read_output(self, call: ReadOutput, _roots: Roots) -> str:
        text = blank_secrets(_text(call.text))
        case = await self._cases.find(call.case) if call.case else None
        seen = await _result(self._service.observations(text))
        if not seen:
            return _json({"observations": [], "says": _NO_OUTPUT})
        after = await self._said(call.case, case, text) if case else None
        step = await _result(self._service.next_check(after)) if after else None
        return _json(
            fitted(
                lambda room: {
                    "case": call.case,
                    "observations": [_seen(one, room) for one in seen[: 3 * room.lines]],
                    "says": "" if any(one.abnormal for one in seen) else _NO_FAULT,
                    **(_standing(after, room) if after else {}),
                    "next": brief_next(to_next(step), room) if step else None,
                }
            )
        )

    async def _next_check(self, call: NextCheckCall, _roots: Roots) -> str:
        case = await self._cases.find(call.case)
        said = blank_secrets(_text(call.said)).strip()
        conversation = await self._said(call.case, case, said) if said else case.conversation
        step = await _result(self._service.next_check(conversation))
        return _json(
            fitted(
                lambda room: {
                    "case": call.case,
                    **_standing(conversation, room),
                    **(_to_run(step, room) if step else _without_check(conversation, room)),
                    "question": msgspec.to_builtins(conversation.question),
                }
            )
        )

    async def _search(self, call: Search, _roots: Roots) -> str:
        text, most = _text(call.query), call.limit
        kinds = list(Kind) if call.kind is None else [Kind(call.kind)] if call.kind != LEAD else []
        found = await _result(self._service.search(text, kinds, most)) if kinds else []
        leads = await _result(self._service.leads(text)) if call.kind in (None, LEAD) else ()
        return _json(
            fitted(
                lambda room: {
                    "found": [_found(one, room) for one in found],
                    "leads": [brief_lead(to_lead(lead), room) for lead in leads[:most]],
                }
            )
        )

    async def _get_record(self, call: GetRecord, _roots: Roots) -> str:
        return await self.record(call.id, call.section)

    async def _draft_record(self, call: DraftRecord, roots: Roots) -> str:
        if call.case:
            diagnosis = (await self._cases.find(call.case)).conversation.diagnosis
        else:
            diagnosis = await self._diagnosed(call.text, call.paths, roots)
        if not diagnosis.evidence.lines:
            raise LogError("the log", "it contains no text")
        draft = await _result(self._service.draft(diagnosis))
        return drop_controls(without_secrets(render(draft)))

    async def _diagnosed(self, text: str, paths: Sequence[str], roots: Roots) -> Diagnosis:
        """The diagnosis without secrets; stopped when nobody waits for it any more."""
        if not (text.strip() or paths):
            raise KbError("there is nothing to diagnose: text and paths are empty")
        stop = threading.Event()

        def open_log() -> Log:
            typed = Log.from_text(_text(text)).sources if text.strip() else ()
            named = open_below(paths, roots).sources if paths else ()
            return Log([*typed, *named])

        try:
            found = self._service.diagnose_for_one(open_log, DEFAULT_MATCHES, stop)
            return with_whole_keys_masked(await _result(found))
        finally:
            stop.set()

    async def _said(self, handle: str, case: Case, text: str) -> Conversation:
        """The case after something was told or pasted."""
        async with case.turn:
            after = await _result(self._service.reply(case.conversation, text))
            await self._cases.tell(handle, case, text)
            case.conversation = after
            return after

    async def _again(self, told: list[str]) -> Case:
        """The case that was told to another process."""
        opening, *said = told
        diagnosis = await self._diagnosed(opening, (), ())
        conversation = begin(diagnosis)
        for text in said:
            conversation = await _result(self._service.reply(conversation, text))
        return Case(to_answer(diagnosis), conversation, told)


async def _result(future: Future[Result]) -> Result:
    return await asyncio.wrap_future(future)


def _text(text: str) -> str:
    """A text that can be encoded."""
    return replace_surrogates(text)


def _json(value: object) -> str:
    """On one line, with secrets masked and without what a terminal obeys."""
    plain = without_secrets(msgspec.to_builtins(value))
    return escape_controls(msgspec.json.encode(plain).decode())


def _in_a_sentence(diagnosis: Diagnosis) -> str:
    """What a verdict other than a match comes to."""
    if diagnosis.verdict is Verdict.MATCH:
        return ""
    return _CANDIDATES if diagnosis.matches else without_incident(diagnosis)


def _standing(conversation: Conversation, room: Room) -> Value:
    return {
        "verdict": conversation.verdict,
        "matches": [
            {
                "id": match.incident.id,
                "title": shortened(match.incident.title, room),
                "confidence": round(match.confidence, 2),
                "cite": f"incident://{match.incident.id}#Fix",
            }
            for match in conversation.matches[: room.matches]
        ],
    }


def _seen(seen: Observation, room: Room) -> Value:
    wire = to_observation(seen)
    told = {
        "check": wire.check,
        "line": wire.line,
        "text": shortened(wire.text, room),
        "abnormal": wire.abnormal,
        "suggests": shortened(seen.suggests, room),
        "then": shortened(seen.then, room),
        "points_to": list(seen.points_to[: room.lines]),
        "cite": f"check://{wire.check}#Findings",
    }
    return {
        name: value for name, value in told.items() if value not in (None, []) or name == "abnormal"
    }


def _to_run(step: NextCheck, room: Room) -> Value:
    """The check, and how to read what it prints."""
    body = step.check.body
    return {
        "next": {**(brief_next(to_next(step), room) or {}), "title": step.check.title},
        "note": shortened(step.command.note, room),
        "findings": [_finding(one, room) for one in body.findings[: 2 * room.lines]],
        "normal": shortened(body.normal, room),
        "cannot_see": [shortened(one.text, room) for one in body.cannot_see[: room.lines]],
    }


def _finding(finding: Finding, room: Room) -> Value:
    told = {
        "if": shortened(finding.rule, room),
        "means": shortened(finding.means, room),
        "abnormal": finding.abnormal,
        "points_to": list(finding.points_to[: room.lines]),
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def _found(found: FoundRecord, room: Room) -> Value:
    return {
        "id": found.record.id,
        "kind": found.record.kind,
        "title": shortened(found.record.title, room),
        "likeness": found.likeness,
        "cite": _address(found.record),
    }


def _without_check(conversation: Conversation, room: Room) -> Value:
    if conversation.verdict is not Verdict.MATCH:
        return {"says": _NO_CHECK}
    steps = conversation.matches[0].incident.body.fix
    return {
        "says": _MATCHED,
        "fix": [brief_step(to_step(step), room) for step in steps[: room.steps]],
    }


def _address(record: Record) -> str:
    scheme = "incident" if isinstance(record, Incident) else record.kind.value
    return f"{scheme}://{record.id}"


def _section(markdown: str, record: Record, heading: str) -> str:
    """The part below a heading, whatever its case."""
    sections = dict(_sections(markdown))
    found = next((one for one in sections if one.lower() == heading.strip().lower()), None)
    if found is None:
        name = f"section of {record.id}"
        raise KbError(unknown(name, _text(heading), sections, f"it has {', '.join(sections)}"))
    return f"{_address(record)}#{found}\n\n## {found}\n\n{sections[found]}\n"


def _sections(markdown: str) -> Iterable[tuple[str, str]]:
    for part in markdown.split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        yield heading, text.strip("\n")

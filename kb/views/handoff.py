"""The note that one engineer hands to the next: what is known, what was done, what was said.

It goes into tickets and chats, so secrets are masked in all of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from kb.diagnosis import Diagnosis, Match, Why
from kb.evidence import EvidenceLine, Facts
from kb.evidence.markers import Grade
from kb.incident import Step
from kb.job import Job, Saying
from kb.log.clean import strip_controls
from kb.log.secrets import mask_lines, without_secrets
from kb.markdown import fenced
from kb.verdict import ANSWER_AT, Verdict, percent
from kb.views.job import place, who
from kb.views.json import indented, to_object

SCHEMA = 1
"""Of the JSON; grows when a key is removed or changes its meaning."""

_MOST_LINES = 20
_MOST_CULPRITS = 4


class Spoken(Protocol):
    """A turn of a conversation."""

    @property
    def speaker(self) -> str:
        """Who speaks."""

    @property
    def text(self) -> str:
        """What is said."""


class Said(msgspec.Struct, frozen=True):
    """The turn as the note has it."""

    speaker: str
    text: str


class HandOff(msgspec.Struct, frozen=True):
    """All that goes into the note."""

    time: datetime
    """With its time zone."""
    sources: tuple[str, ...]
    """Names of the files, or what else was diagnosed."""
    diagnosis: Diagnosis
    """With its matches as they stand now: a conversation may have changed them."""
    done: Mapping[str, Collection[int]]
    """The steps that were done, from 0, by the id of the incident whose fix they are."""
    conversation: tuple[Said, ...]

    @classmethod
    def of(
        cls,
        diagnosis: Diagnosis,
        time: datetime,
        sources: Sequence[str],
        matches: Sequence[Match] | None = None,
        done: Mapping[str, Collection[int]] | None = None,
        conversation: Iterable[Spoken] = (),
    ) -> HandOff:
        """Take down what there is, with secrets masked. `matches` are those of the diagnosis unless
        given."""
        if matches is not None:
            diagnosis = msgspec.structs.replace(
                diagnosis, matches=tuple(matches), verdict=_verdict(matches, diagnosis)
            )
        said = tuple(Said(turn.speaker, turn.text) for turn in conversation)
        note = cls(time, tuple(sources), _with_keys_masked(diagnosis), done or {}, said)
        return without_secrets(note)

    @property
    def name(self) -> str:
        """How a file of it is called, without its ending: `incident-20261121-0310`."""
        return f"incident-{self.time:%Y%m%d-%H%M}"

    def evidence(self) -> list[EvidenceLine]:
        """The lines that speak for the first match and the most telling ones, in order of place."""
        lines = [why.line for match in self.diagnosis.matches[:1] for why in match.why]
        lines += [line for line in self.diagnosis.evidence.lines if line.grade >= Grade.ERROR]
        chosen = {(line.file or "", line.number): line for line in lines[:_MOST_LINES]}
        return [chosen[key] for key in sorted(chosen)]

    def fixes(self) -> Iterator[tuple[Match, list[tuple[Step, bool]]]]:
        """The fix of the first match and those that were begun: each step and if it is done."""
        for match in self.diagnosis.matches:
            done = self.done.get(match.incident.id, ())
            if match is self.diagnosis.matches[0] or done:
                steps = enumerate(match.incident.body.fix)
                yield match, [(step, number in done) for number, step in steps]


def _verdict(matches: Sequence[Match], diagnosis: Diagnosis) -> Verdict:
    if not matches:
        return Verdict.UNKNOWN if diagnosis.matches else diagnosis.verdict
    return Verdict.MATCH if matches[0].confidence >= ANSWER_AT else Verdict.POSSIBLE


def _with_keys_masked(diagnosis: Diagnosis) -> Diagnosis:
    """Private keys are masked where all their lines are together; what is quoted follows."""
    masked = mask_lines(diagnosis.evidence.lines)
    text = {(line.file, line.number): line.text for line in masked}

    def quoted(why: Why) -> Why:
        shown = text.get((why.line.file, why.line.number), why.line.text)
        return Why(msgspec.structs.replace(why.line, text=shown), why.by)

    matches = (
        msgspec.structs.replace(match, why=tuple(map(quoted, match.why)))
        for match in diagnosis.matches
    )
    evidence = msgspec.structs.replace(diagnosis.evidence, lines=masked)
    return msgspec.structs.replace(diagnosis, matches=tuple(matches), evidence=evidence)


def to_json(handoff: HandOff) -> str:
    """One JSON object, indented: what `kb ask --json` prints as `diagnosis`, and beside it what was
    done and said."""
    return indented(_to_object(handoff))


def _to_object(handoff: HandOff) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time": handoff.time,
        "sources": handoff.sources,
        "diagnosis": to_object(handoff.diagnosis),
        "evidence": [
            {"file": line.file, "line": line.number, "text": line.text, "count": line.count}
            for line in handoff.evidence()
        ],
        "steps": [
            {
                "incident": match.incident.id,
                "step": step.text,
                "command": step.command,
                "done": done,
            }
            for match, steps in handoff.fixes()
            for step, done in steps
        ],
        "conversation": handoff.conversation,
    }


def to_markdown(handoff: HandOff) -> str:
    """A page that any forge or chat renders. What programs and people wrote stands in blocks that
    nothing in it can close."""
    return "\n\n".join(filter(None, _parts(handoff))) + "\n"


def _parts(handoff: HandOff) -> Iterator[str]:
    diagnosis = handoff.diagnosis
    yield f"# Hand-off, {handoff.time:%Y-%m-%d %H:%M %Z}"
    yield f"Diagnosed: {', '.join(map(_code, handoff.sources))}" if handoff.sources else ""
    yield "\n\n".join(_answer(diagnosis))
    if diagnosis.job and diagnosis.job.culprits:
        yield "## First to fail" if diagnosis.job.failed else "## Slow"
        yield from _first(diagnosis.job)
    if lines := handoff.evidence():
        yield "## Evidence"
        yield fenced("\n".join(f"{_where(line)}: {line.text}" for line in lines), "text")
    if facts := list(_facts(diagnosis.evidence.facts)):
        yield "## Facts"
        yield "\n".join(facts)
    for match, steps in handoff.fixes():
        yield f"## Steps for `{match.incident.id}`"
        yield "\n\n".join(_step(step, done) for step, done in steps)
        yield f"Verify: {match.incident.body.verify}"
    if handoff.conversation:
        yield "## Conversation"
        for said in handoff.conversation:
            yield f"{_code(said.speaker)}:\n\n{fenced(strip_controls(said.text), 'text')}"
    if diagnosis.matches:
        yield "## References"
        yield "\n".join(f"- <{url}>" for url in diagnosis.matches[0].incident.header.references)


def _answer(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"Verdict: **{diagnosis.verdict}**"
    for match in diagnosis.matches[:1]:
        yield f"**{percent(match.confidence)}** {_named(match)}"
        if match.incident.header.caution:
            yield f"Caution: {match.incident.header.caution}"
    if others := diagnosis.matches[1:]:
        yield "Also possible:"
        yield "\n".join(f"- {percent(match.confidence)} {_named(match)}" for match in others)
    if diagnosis.notes:
        yield "Also in the log:"
        yield "\n".join(
            f"- {note.incident.kind}: `{note.incident.id}`: {note.incident.title}"
            for note in diagnosis.notes
        )
    if diagnosis.question:
        yield f"To be surer: {diagnosis.question.text}"


def _named(match: Match) -> str:
    return f"`{match.incident.id}`: {match.incident.title}"


def _first(job: Job) -> Iterator[str]:
    for said in job.culprits[:_MOST_CULPRITS]:
        yield " ".join(filter(None, (_code(who(said)), _at(said), said.time and _code(said.time))))
        yield fenced(strip_controls(said.text), "text") if said.text else ""
    yield f"{job.finding[:1].upper()}{job.finding[1:]}." if job.finding else ""


def _at(said: Saying) -> str:
    return f"at {_code(place(said))}" if place(said) else ""


def _where(line: EvidenceLine) -> str:
    return f"{strip_controls(line.file)}:{line.number}" if line.file else str(line.number)


def _facts(facts: Facts) -> Iterator[str]:
    """A line for each fact that the log tells."""
    for name, value in msgspec.to_builtins(facts).items():
        if isinstance(value, dict):
            value = [f"{key} {inner}" for key, inner in value.items()]
        if value not in (None, [], ()):
            values = value if isinstance(value, list | tuple) else [value]
            yield f"- {name.replace('_', ' ')}: {', '.join(_code(str(one)) for one in values)}"


def _step(step: Step, done: bool) -> str:
    text = f"- [{'x' if done else ' '}] {step.text}"
    command = fenced(step.command, step.language) if step.command else ""
    return "\n".join([text, *(f"  {line}" for line in command.split("\n") if command)])


def _code(text: str) -> str:
    """A code span that nothing in the text can end."""
    shown = strip_controls(text).replace("\n", " ")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{ticks} {shown} {ticks}" if len(ticks) > 1 else f"`{shown}`"

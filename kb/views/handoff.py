"""The hand-off note as a page of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.diagnosis import Diagnosis, Match
from kb.evidence import EvidenceLine, Facts
from kb.incident import Step
from kb.job import Job, QuotedLine
from kb.log.clean import strip_controls
from kb.markdown import fenced
from kb.service.handoff import HandOff
from kb.verdict import percent
from kb.views.job_names import file_and_line, rank_and_host

_MAX_CULPRITS = 4
"""Number of ranks that failed first that a note names."""


def to_markdown(handoff: HandOff) -> str:
    """Markdown that any chat or code host renders. Text by programs and people is in fenced blocks
    that it cannot close."""
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
        yield f"To narrow it down: {diagnosis.question.text}"


def _named(match: Match) -> str:
    return f"`{match.incident.id}`: {match.incident.title}"


def _first(job: Job) -> Iterator[str]:
    for said in job.culprits[:_MAX_CULPRITS]:
        yield " ".join(
            filter(None, (_code(rank_and_host(said)), _at(said), said.time and _code(said.time)))
        )
        yield fenced(strip_controls(said.text), "text") if said.text else ""
    yield f"{job.finding[:1].upper()}{job.finding[1:]}." if job.finding else ""


def _at(said: QuotedLine) -> str:
    return f"at {_code(file_and_line(said))}" if file_and_line(said) else ""


def _where(line: EvidenceLine) -> str:
    return f"{strip_controls(line.file)}:{line.number}" if line.file else str(line.number)


def _facts(facts: Facts) -> Iterator[str]:
    """A line for each fact that the log tells."""
    for name, value in msgspec.to_builtins(facts).items():
        if isinstance(value, dict):
            value = [f"{key} {inner}" for key, inner in value.items()]
        if value not in (None, [], ()):
            values = value if isinstance(value, list | tuple) else [value]
            yield f"- {name.replace('_', ' ')}: {', '.join(_code(str(value)) for value in values)}"


def _step(step: Step, done: bool) -> str:
    text = f"- [{'x' if done else ' '}] {step.text}"
    command = fenced(step.command, step.language) if step.command else ""
    return "\n".join([text, *(f"  {line}" for line in command.split("\n") if command)])


def _code(text: str) -> str:
    """A code span that nothing in the text can end."""
    shown = strip_controls(text).replace("\n", " ")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{ticks} {shown} {ticks}" if len(ticks) > 1 else f"`{shown}`"

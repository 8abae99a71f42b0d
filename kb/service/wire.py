"""The output for programs: these types define the JSON schema, `docs/ask.schema.json`.

All exported data goes through this module, which masks secrets. The person who pasted the log still
sees their own text: their terminal and their screen show the `Diagnosis` itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from kb.checks import Observation
from kb.diagnosis import (
    By,
    Diagnosis,
    Match,
    NextCheck,
    Note,
    PlaybookMatch,
    Question,
    Why,
    likeliest_causes,
)
from kb.evidence.secrets import mask_lines, without_secrets
from kb.incident import Step
from kb.job import FailureKind
from kb.lead import Lead
from kb.log.clean import escape_controls
from kb.outcome import Outcome
from kb.verdict import Verdict

Wire = TypeVar("Wire", bound=msgspec.Struct)

SCHEMA: Literal[1] = 1
"""Grows when a key is removed or changes its meaning; keys may be added."""


class WireWhy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the input that supports a record."""

    file: str | None
    line: Annotated[int, Meta(ge=1)]
    text: str
    by: By


class WireStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a fix."""

    step: str
    command: str | None
    why: str | None


class WireMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An incident with its confidence, its evidence and its fix."""

    id: str
    title: str
    confidence: Annotated[float, Meta(ge=0, le=1)]
    caution: Annotated[str | None, Meta(description="What a match does not prove.")]
    systems: list[str]
    why: Annotated[list[WireWhy], Meta(description="In the order of the input.")]
    fix: Annotated[list[WireStep], Meta(min_length=1)]
    verify: str
    references: list[Annotated[str, Meta(pattern="^https?://")]]


class WireNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A known follow-on error or known noise in the input."""

    id: str
    kind: Literal["cascade", "harmless"]
    title: str
    why: list[WireWhy]


class WireQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most informative question, with its possible answers. kb chat continues from it."""

    text: str
    answers: Annotated[list[str], Meta(min_length=2)]


class WireCause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause of a symptom."""

    cause: str
    remedy: str
    pointed: Annotated[
        bool, Meta(description="Whether a line or an output in the input speaks for it.")
    ]


class WirePlaybook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the symptom may be, where its cause is not known."""

    id: str
    title: str
    confidence: Annotated[
        float, Meta(ge=0, le=1, description="Together with those of the matches at most 1.")
    ]
    secure: Annotated[list[str], Meta(description="To be saved before anything is restarted.")]
    tonight: Annotated[list[str], Meta(description="What gets the job going.")]
    causes: Annotated[list[WireCause], Meta(description="Likeliest first.")] = []


class WireNext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The check to run next. Words in capitals in its command stand for values of the job."""

    check: str
    title: str
    command: str
    where: str
    risk: Annotated[str, Meta(description="The worst that it does to the job.")]
    why: str


class WireLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line with the rank and host that printed it; null if unknown."""

    rank: Annotated[int | None, Meta(description="Global.")]
    host: str | None
    file: str | None
    line: int | None
    time: Annotated[str | None, Meta(description="As printed.")]
    text: str | None


class WireCascade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ranks that failed as a consequence, and their most common message."""

    count: int
    text: str


class WireGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ranks with the same last message."""

    ranks: list[int]
    text: str
    hosts: Annotated[list[str], Meta(description="In place of ranks, where no line tells one.")]
    file: Annotated[str | None, Meta(description="Where the first of them said it.")] = None
    line: int | None = None


class WireJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first failure, and the state of the other ranks."""

    failed: Annotated[bool, Meta(description="False also for a job that is only slow.")]
    kind: FailureKind | None
    world_size: int | None
    culprits: Annotated[
        list[WireLine],
        Meta(
            description="The first failures, most certain first; for a job that is only slow, its"
            " straggler."
        ),
    ]
    cascade: WireCascade | None
    others: Annotated[list[WireGroup], Meta(description="The ranks that are not at fault.")]
    timeline: list[WireLine]
    earlier: Annotated[list[WireLine], Meta(description="What failed in earlier attempts.")]
    finding: Annotated[str | None, Meta(description="What happened, in a sentence.")]


class WireFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts read from the lines."""

    systems: list[str]
    versions: dict[str, str]
    collective: str | None
    sequence: int | None = None
    elements: list[int] | None = None
    timeout_ms: int | None = None
    ranks: list[int] = []
    world_size: int | None = None
    exit_codes: list[int] = []
    signals: list[str] = []
    xid: list[int] = []
    cuda_errors: list[int] = []
    nccl_errors: list[str] = []
    errno: list[int] = []
    environment: dict[str, str] = {}
    accelerators: list[str] = []
    absent_systems: list[str] = []


class WireObservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the output of a check shows."""

    check: str
    text: Annotated[str, Meta(description="What it means, with the values read.")]
    file: str | None
    line: Annotated[int, Meta(ge=1)]
    abnormal: Annotated[
        bool | None,
        Meta(description="Null: a value could not be read, so nothing is known of it."),
    ]


class WireLead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report of the user's own backlog that may be about the same. Nobody reviewed it."""

    id: str
    title: str
    url: str | None
    source: Annotated[
        str,
        Meta(description="The file below the imported folder, with #part where it has several."),
    ]
    score: Annotated[
        float,
        Meta(ge=0, le=1, description="The share of such leads that were the right report."),
    ]
    resolved: bool
    fix: Annotated[
        str | None, Meta(description="What ended it, quoted; null where nobody wrote it.")
    ]
    quote: Annotated[str, Meta(description="What of it matches.")]
    backlog: Annotated[str, Meta(description="The name of its import.")]
    opened: datetime | None
    fix_by: Annotated[
        Literal["reporter", "maintainer", "other", "bot"] | None,
        Meta(description="Who wrote the fix."),
    ]
    fix_from: Annotated[
        str | None, Meta(description="Where, if in another report of the same case.")
    ]
    environment: Annotated[list[str], Meta(description="Systems and versions that it names.")]
    seen: Annotated[int, Meta(ge=1, description="Reports of the same case, with itself.")]
    also: Annotated[list[str], Meta(description="Where the others of them are.")]


class WireEarlier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the same case ended on this machine the last time."""

    record: Annotated[str, Meta(description="The id of the incident or playbook.")]
    time: datetime
    step: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The step of its fix that helped; null if unknown."),
    ]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One diagnosis."""

    schema: Annotated[
        Literal[1],
        Meta(description="Grows when a key is removed or changes its meaning; keys may be added."),
    ]
    verdict: Annotated[
        Verdict,
        Meta(
            description="match: the first match is above the match threshold. possible: candidates"
            " worth reading, or only follow-on errors (see notes). unknown: no known incident"
            " fits. healthy: no sign of failure in the input."
        ),
    ]
    matches: Annotated[list[WireMatch], Meta(description="Incidents, best first.")]
    notes: list[WireNote]
    question: Annotated[
        WireQuestion | None, Meta(description="Null when no answer would change the order.")
    ]
    job: Annotated[
        WireJob | None, Meta(description="Null when the input is not from several ranks.")
    ]
    facts: WireFacts
    elapsed_ms: Annotated[float, Meta(ge=0)]
    observations: Annotated[
        list[WireObservation],
        Meta(
            description="What the outputs of checks in the input show: what differs between hosts"
            " first, then what is abnormal."
        ),
    ] = []
    playbooks: Annotated[list[WirePlaybook], Meta(description="Symptoms, best first.")] = []
    next: Annotated[
        WireNext | None,
        Meta(description="Null for a match, whose fix comes next, and where no playbook fits."),
    ] = None
    earlier: Annotated[
        WireEarlier | None,
        Meta(description="Null where no such case is known to have ended."),
    ] = None
    leads: Annotated[
        list[WireLead],
        Meta(
            description="Imported reports, not reviewed, best first. Empty for a match. Never part"
            " of a confidence."
        ),
    ] = []
    notices: Annotated[
        list[str], Meta(description="What was not read of the input, or not as it is, and why.")
    ] = []


def to_answer(diagnosis: Diagnosis, earlier: Outcome | None = None) -> Answer:
    """The exported answer, with secrets masked in all text from the user's log; `earlier` is how
    the same case ended the last time."""
    outgoing = with_whole_keys_masked(diagnosis)
    question = outgoing.question
    return Answer(
        schema=SCHEMA,
        verdict=outgoing.verdict,
        matches=[_match(match) for match in outgoing.matches],
        notes=[_note(note) for note in outgoing.notes],
        question=to_question(question) if question else None,
        job=_converted(outgoing.job, WireJob) if outgoing.job else None,
        facts=_converted(outgoing.evidence.facts, WireFacts),
        elapsed_ms=round(outgoing.elapsed_ms, 1),
        observations=[to_observation(seen) for seen in outgoing.observations],
        playbooks=[_playbook(match, outgoing) for match in outgoing.playbooks],
        next=to_next(outgoing.next) if outgoing.next else None,
        earlier=WireEarlier(earlier.record, earlier.time, earlier.step or None)
        if earlier
        else None,
        leads=[to_lead(lead) for lead in outgoing.leads],
        notices=without_secrets(list(diagnosis.notices)),
    )


def to_json(diagnosis: Diagnosis, earlier: Outcome | None = None) -> str:
    """The answer as one JSON object, indented."""
    return indented(to_answer(diagnosis, earlier))


def indented(value: object) -> str:
    """What msgspec can encode, as JSON for people and terminals."""
    return escape_controls(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def json_schema(
    kind: type[msgspec.Struct] = Answer, title: str = "kb ask --json"
) -> dict[str, Any]:
    """The schema of what a command prints, as docs/ask.schema.json holds it."""
    definitions = msgspec.json.schema(kind)["$defs"]
    top = definitions.pop(kind.__name__)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **top, "title": title, "$defs": definitions}


def to_question(question: Question) -> WireQuestion:
    """The question with its answers."""
    return WireQuestion(question.text, list(question.answers))


def _match(match: Match) -> WireMatch:
    header, body = match.incident.header, match.incident.body
    return WireMatch(
        id=header.id,
        title=header.title,
        confidence=match.confidence,
        caution=header.caution,
        systems=list(header.systems),
        why=_why(match.why),
        fix=[to_step(step) for step in body.fix],
        verify=body.verify,
        references=list(header.references),
    )


def _note(note: Note) -> WireNote:
    header = note.incident.header
    kind: Any = header.kind.value
    return WireNote(header.id, kind, header.title, _why(note.why))


def _why(lines: Iterable[Why]) -> list[WireWhy]:
    return [
        WireWhy(why.line.file, why.line.number, without_secrets(why.line.text), why.by)
        for why in lines
    ]


def to_observation(seen: Observation) -> WireObservation:
    """What an output shows, with secrets masked."""
    text = without_secrets(seen.text)
    return WireObservation(seen.check, text, seen.file, seen.line, seen.abnormal)


def to_step(step: Step) -> WireStep:
    """A step of a fix."""
    return WireStep(step.text, step.command, step.why)


def _playbook(match: PlaybookMatch, diagnosis: Diagnosis) -> WirePlaybook:
    body, pointed = match.playbook.body, diagnosis.pointed
    return WirePlaybook(
        id=match.playbook.id,
        title=match.playbook.title,
        confidence=match.confidence,
        secure=list(body.secure),
        tonight=[mitigation.do for mitigation in body.tonight],
        causes=[
            WireCause(
                cause=cause.cause,
                remedy=cause.remedy,
                pointed=pointed.get(f"{match.playbook.id}:{cause.key}", 1.0) > 1.0,
            )
            for cause in likeliest_causes(match.playbook, diagnosis.matches, pointed)
        ],
    )


def to_next(step: NextCheck) -> WireNext:
    """The check to run next."""
    header = step.check.header
    return WireNext(
        check=step.check.id,
        title=step.check.title,
        command=step.command.run,
        where=header.where,
        risk=header.cost.risk,
        why=step.why,
    )


def _earlier(outcome: Outcome) -> WireEarlier:
    return WireEarlier(outcome.record, outcome.time, outcome.step or None)


def to_lead(lead: Lead) -> WireLead:
    """A report of the user's own backlog, with secrets masked."""
    return _converted(lead, WireLead)


def _converted(value: msgspec.Struct, wire: type[Wire]) -> Wire:
    return msgspec.convert(without_secrets(msgspec.to_builtins(value)), wire)


def with_whole_keys_masked(diagnosis: Diagnosis) -> Diagnosis:
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

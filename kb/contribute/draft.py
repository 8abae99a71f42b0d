"""Drafts a record: fills in facts from a log, and marks the parts that need a person."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kb.contribute.neutral import is_host, neutral
from kb.contribute.signatures import literal_parts, propose, shortened
from kb.contribute.todo_marks import MARK, NO_SYSTEM
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis
from kb.evidence import EvidenceLine, Facts
from kb.evidence.markers import Grade
from kb.evidence.secrets import mask_lines, without_secrets
from kb.evidence.systems import system_patterns
from kb.files import create, free_names
from kb.guides import Record
from kb.incident import (
    Body,
    Certainty,
    Environment,
    EvidenceBlock,
    Header,
    Incident,
    Kind,
    Signature,
    Step,
    Topology,
)
from kb.log.prefixes import split_prefix
from kb.markdown import AnyHeader, render
from kb.verdict import SYMPTOM_AT

_MAX_EVIDENCE_LINES = 12
"""Number of lines quoted as evidence when some report an error or hint at one."""
_TAIL_LINES = 8
"""Number of last lines quoted when none does, as of a hang."""
_MAX_SYSTEMS = 6
"""Number of systems proposed, those that are named most often."""
_MAX_TITLE_CHARACTERS = 120
"""A title fits on two rows of a terminal."""
_MAX_ID_WORDS = 8
_MAX_ID_CHARACTERS = 60
"""Words and characters of an id, which people type."""
_NO_ID = "new-incident"


class Answers(msgspec.Struct, frozen=True):
    """The answers of a person before the draft is written; empty strings for skipped questions."""

    title: str = ""
    symptom: str = ""
    cause: str = ""
    fix: str = ""
    systems: tuple[str, ...] = ()


class _Found(msgspec.Struct, frozen=True):
    """What a log tells."""

    evidence: str = ""
    signatures: tuple[Signature, ...] = ()
    versions: dict[str, str] = {}
    setting: str = ""
    finding: str = ""
    """What happened in a job, in the words of the field."""
    several_hosts: bool = False
    symptoms: tuple[str, ...] = ()
    """The playbook of the symptom, where that is known."""


def draft(diagnosis: Diagnosis, knowledge: KnowledgeBase, title: str | None = None) -> str:
    """The Markdown of a draft from a diagnosis."""
    return render(draft_record(diagnosis, knowledge, title))


def draft_record(
    diagnosis: Diagnosis, knowledge: KnowledgeBase, title: str | None = None
) -> Incident:
    """The same as a record, with an id that no record has. `title` replaces the drafted one."""
    lines, hosts = _chosen(diagnosis), _hosts(diagnosis)
    facts = without_secrets(diagnosis.evidence.facts)
    told = [*(line.text for line in lines), _setting(facts), _finding(diagnosis)]
    # Together, so that a host has the same name in all of it.
    *shown, setting, finding = neutral("\n".join(told), hosts).split("\n")
    evidence = "\n".join(shown)
    signatures = propose(evidence, knowledge)
    message = _message(signatures, shown[_most_telling(lines)] if shown else "")
    answers = Answers(
        title=title or f"{message}, because {MARK} the cause", systems=_systems(facts, evidence)
    )
    symptoms = tuple(
        match.playbook.id for match in diagnosis.playbooks[:1] if match.share >= SYMPTOM_AT
    )
    found = _Found(evidence, signatures, facts.versions, setting, finding, len(hosts) > 1, symptoms)
    return _record(_free_id(title or message, knowledge), answers, found)


def blank_record(answers: Answers, knowledge: KnowledgeBase) -> Incident:
    """A draft from what a person told, with an id that no record has."""
    return _record(_free_id(answers.title, knowledge), answers, _Found())


def save(record: Record, path: Path) -> Path:
    """Write a draft under this name or the next free one, and return its path. Its id is the name
    of the file.

    Raises:
        OutputError: it cannot be written.
    """
    for free in free_names(path):
        header: AnyHeader = msgspec.structs.replace(record.header, id=free.stem)
        named: Record = msgspec.structs.replace(record, header=header)
        with suppress(FileExistsError):
            create(free, render(named).encode())
            return free
    raise AssertionError  # names do not end


def _record(identifier: str, answers: Answers, found: _Found) -> Incident:
    today = datetime.now(UTC).date()
    header = Header(
        id=identifier,
        title=answers.title or f"{MARK} the symptom and its cause, in one line",
        kind=Kind.INCIDENT,
        systems=answers.systems or (NO_SYSTEM,),
        symptoms=found.symptoms,
        environment=Environment(
            frameworks=dict.fromkeys(found.versions, "any"),
            hardware=f"{MARK} which GPUs and network, how many",
            topology=Topology.MULTI_NODE if found.several_hosts else Topology.ANY,
        ),
        signatures=found.signatures,
        references=(f"https://{MARK}where-the-facts-come-from",),
        confidence=Certainty.DOCUMENTED,
        aliases=(f"{MARK} the symptom as a user would type it; at least five, some in Chinese",),
        created=today,
        updated=today,
    )
    body = Body(
        symptom=answers.symptom or _and_blank(found.finding, "the symptoms, in words"),
        setting=_and_blank(found.setting, "where it happens: hardware, topology, launch options"),
        cause=answers.cause or f"{MARK} the mechanism, and how certain it is",
        fix=(Step(answers.fix or f"{MARK} what to do, as an imperative sentence"),),
        verify=f"{MARK} how to see that it is fixed",
        evidence=(
            EvidenceBlock(found.evidence, "own run")
            if found.evidence
            else EvidenceBlock(f"{MARK} log lines exactly as the program prints them"),
        ),
    )
    return Incident(header, body)


def _and_blank(told: str, what: str) -> str:
    return "\n\n".join(filter(None, (told, f"{MARK} {what}")))


def _chosen(diagnosis: Diagnosis) -> list[EvidenceLine]:
    """The lines that show the failure, in the order of the log; of a hang, the last ones."""
    noise = {
        (why.line.file, why.line.number)
        for note in diagnosis.notes
        if note.incident.kind is Kind.HARMLESS
        for why in note.why
    }
    lines = [
        line
        for line in mask_lines(diagnosis.evidence.lines)
        if (line.file, line.number) not in noise
    ]
    for least in (Grade.ERROR, Grade.HINT):
        if telling := [line for line in lines if line.grade >= least][:_MAX_EVIDENCE_LINES]:
            return _in_order(telling)
    return _in_order(lines)[-_TAIL_LINES:]


def _finding(diagnosis: Diagnosis) -> str:
    """What happened in a job, as a sentence."""
    finding = diagnosis.job.finding if diagnosis.job else None
    return f"{finding[0].upper()}{finding[1:]}." if finding else ""


def _in_order(lines: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    return sorted(lines, key=lambda line: (line.file or "", line.number))


def _most_telling(lines: Sequence[EvidenceLine]) -> int:
    """Place of the first line of the highest grade."""
    return max(range(len(lines)), key=lambda place: lines[place].grade, default=0)


def _hosts(diagnosis: Diagnosis) -> frozenset[str]:
    job = diagnosis.job
    said = (*job.culprits, *job.timeline, *job.earlier) if job else ()
    named = [*(line.host for line in said), *(line.host for line in diagnosis.evidence.lines)]
    return frozenset(filter(is_host, filter(None, named)))


def _message(signatures: Sequence[Signature], line: str) -> str:
    """The symptom: the finding from the log, otherwise its main line without the rank prefix."""
    literal = next(literal_parts([line]), split_prefix(line).text)
    text = signatures[0].pattern if signatures else literal or "A job fails"
    return shortened(" ".join(text.split()), _MAX_TITLE_CHARACTERS)


def _systems(facts: Facts, evidence: str) -> tuple[str, ...]:
    """Those that the log speaks of; those of the evidence first."""
    spoken = {name: len(system_patterns()[name].findall(evidence)) for name in facts.systems}
    return tuple(sorted(spoken, key=lambda name: -spoken[name])[:_MAX_SYSTEMS])


def _setting(facts: Facts) -> str:
    """Versions and settings as a sentence."""
    seen = [f"{name} {version}" for name, version in facts.versions.items()]
    seen += [f"`{name}={value}`" for name, value in facts.environment.items()]
    if facts.world_size:
        seen.append(f"{facts.world_size} ranks")
    return f"Seen with {', '.join(seen)}." if seen else ""


def _free_id(title: str, knowledge: KnowledgeBase) -> str:
    taken = set(knowledge.ids())
    words = re.findall(r"[a-z0-9]+", title.lower())[:_MAX_ID_WORDS]
    name = "-".join(words)[:_MAX_ID_CHARACTERS].strip("-") or _NO_ID
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)

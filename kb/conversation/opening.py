"""The first turn: what is seen, what is most likely behind it, and what to do now."""

from __future__ import annotations

from collections.abc import Iterator

from kb.conversation.speech import (
    cite,
    described_check,
    location,
    quote,
    quote_with_location,
    tool_turn,
)
from kb.conversation.state import Turn
from kb.diagnosis import By, Diagnosis, collecting, without_incident
from kb.evidence import Evidence, EvidenceLine
from kb.evidence.markers import Grade
from kb.incident import Kind
from kb.job import QuotedLine
from kb.verdict import Verdict, percent


def opening(diagnosis: Diagnosis) -> Turn:
    """What is seen, with the lines, and the most likely cause, in the words of its record."""
    lines = list(_seen_lines(diagnosis))
    sentences = f"{_seen(diagnosis, lines)} {_likely(diagnosis)}".strip()
    text = f"{sentences}{_way_forward(diagnosis)}"
    known = [match.incident.id for match in diagnosis.matches]
    known += [note.incident.id for note in diagnosis.notes]
    return tool_turn(text, known, lines)


def _seen_lines(diagnosis: Diagnosis) -> Iterator[EvidenceLine]:
    """The lines that the first sentence speaks of, the one it quotes first."""
    if diagnosis.matches:
        why = diagnosis.matches[0].why
        yield from (item.line for item in sorted(why, key=lambda item: item.by is By.MEANING))
    elif diagnosis.notes:
        yield from (why.line for why in diagnosis.notes[0].why[:1])
    else:
        yield from (line for line in diagnosis.evidence.lines[:1] if line.grade >= Grade.HINT)


def _seen(diagnosis: Diagnosis, lines: list[EvidenceLine]) -> str:
    culprits = diagnosis.job.culprits if diagnosis.job and diagnosis.job.failed else ()
    if culprits:
        return _first_failure(culprits[0])
    if diagnosis.verdict is Verdict.HEALTHY:
        noise = (
            f"; {quote_with_location(lines[0])} is known noise [{_note(diagnosis)}]"
            if lines
            else ""
        )
        return f"The log shows no failure{noise}."
    if not lines:
        return ""
    others = ", ".join(location(line) for line in lines[1:])
    also = f"; see also {others}" if others else ""
    return f"{_speaker(diagnosis.evidence)} {quote_with_location(lines[0])}{also}."


def _speaker(evidence: Evidence) -> str:
    if evidence.human_written:
        return "You wrote"
    return "The log says" if evidence.is_log else "The input says"


def _first_failure(first: QuotedLine) -> str:
    rank = "An unnamed rank" if first.rank is None else f"Rank {first.rank}"
    host = f" on {first.host}" if first.host else ""
    said = f": {quote(first.text)}" if first.text else ""
    where = "" if first.line is None else f" ({first.file or ''} line {first.line})"
    return f"{rank}{host} failed first{said}{where.replace('( ', '(')}."


def _likely(diagnosis: Diagnosis) -> str:
    if diagnosis.matches and not diagnosis.symptom_leads:
        first = diagnosis.matches[0]
        share = percent(first.confidence)
        if diagnosis.verdict is Verdict.MATCH:
            return f"Most likely ({share}): {cite(first.incident)}."
        return f"Not certain yet; most likely so far ({share}): {cite(first.incident)}."
    if diagnosis.verdict is Verdict.HEALTHY:
        return "If something is wrong anyway, tell me what you see and since when."
    if any(note.incident.kind is Kind.CASCADE for note in diagnosis.notes):
        return (
            f"This is a follow-on error [{_note(diagnosis)}]: look for the earliest failure, in"
            " earlier lines or in the log of another rank or host."
        )
    return without_incident(diagnosis)


def _way_forward(diagnosis: Diagnosis) -> str:
    """The symptom, what to secure, and the check to run next, its command ready to copy; empty for
    a match, whose fix is the way."""
    if diagnosis.verdict is Verdict.MATCH or not diagnosis.playbooks:
        return ""
    leading = diagnosis.playbooks[0]
    share, playbook = percent(leading.confidence), leading.playbook
    lines = [
        f"\nSymptom ({share}): {playbook.title} [{playbook.id}].",
        f"Secure before a restart: {'; '.join(playbook.body.secure)}."
        f" By a script for every host: `{collecting(playbook)}`.",
    ]
    if diagnosis.next:
        lines.append(described_check(diagnosis.next))
    return "\n".join(lines)


def _note(diagnosis: Diagnosis) -> str:
    return diagnosis.notes[0].incident.id

"""From a lead to a record: a draft with all that a report tells, the quotes with their source."""

from __future__ import annotations

import msgspec

from kb.backlog.model import Report
from kb.contribute.draft import draft_record
from kb.contribute.todo_marks import MARK
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.incident import EvidenceBlock, Incident, Step
from kb.log import Log

_MAX_QUOTE_CHARACTERS = 2_000


def draft_of(report: Report, knowledge: KnowledgeBase) -> Incident:
    """A record of the report's case, for a person to check and complete."""
    diagnosis = diagnose(Log.from_text(text_of(report)), knowledge)
    draft = draft_record(diagnosis, knowledge, _one_line(report.title)[:300] or None)
    body = msgspec.structs.replace(
        draft.body,
        symptom=_one_line(report.symptom) or draft.body.symptom,
        fix=(Step(_fix(report)),),
        evidence=tuple(
            EvidenceBlock(block.text, report.url or block.source) for block in draft.body.evidence
        ),
    )
    references = (report.url,) if report.url else draft.header.references
    return Incident(msgspec.structs.replace(draft.header, references=references), body)


def text_of(report: Report) -> str:
    """The report as somebody would paste it."""
    return "\n".join([report.title, *(report.lines or (report.symptom,))])


def _fix(report: Report) -> str:
    told = report.resolution
    if told is None:
        return f"{MARK} what to do, as an imperative sentence"
    return f"{MARK} as an imperative sentence; the {told.role} wrote: {_one_line(told.quote)}"


def _one_line(text: str) -> str:
    """Without what Markdown would take for a heading, a list or a fence."""
    return " ".join(text.replace("```", " ").split())[:_MAX_QUOTE_CHARACTERS].lstrip("#-*> ")

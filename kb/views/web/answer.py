"""The page of one diagnosis. It leaves the machine, so secrets are masked in all of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kb.diagnosis import Diagnosis, without_incident
from kb.evidence import EvidenceLine
from kb.evidence.secrets import mask_lines, mask_secrets, without_secrets
from kb.incident import Kind
from kb.service.wire import WireMatch, WireWhy, to_answer
from kb.verdict import Verdict
from kb.views.web.pages import Pages, Row

_ROOT = "./"
_MAX_LINES = 80
"""Of the log, the most telling ones; what is left out is said."""


class Quoted(msgspec.Struct, frozen=True):
    """A line of the log as the page shows it."""

    file: str | None
    number: int
    text: str
    supports: bool
    """It speaks for the first incident."""
    skips: bool
    """Lines in front of it are not shown."""


def answer_page(pages: Pages, diagnosis: Diagnosis) -> str:
    """The answer, what to do first, and the lines of the log that it rests on."""
    answer = to_answer(diagnosis)
    leads = not diagnosis.symptom_leads and bool(answer.matches)
    best = answer.matches[0] if leads else None
    said = f"{answer.verdict}: {best.title}" if best else without_incident(diagnosis)
    return pages.make(
        "answer",
        _ROOT,
        answer=answer,
        best=best,
        others=[_row(match) for match in answer.matches[1 if best else 0 :]],
        confidences={match.id: match.confidence for match in answer.matches},
        sentence=without_incident(diagnosis),
        said=said,
        risk=diagnosis.next.check.header.cost.risk.in_words if diagnosis.next else None,
        is_match=answer.verdict == Verdict.MATCH,
        playbook=None if answer.verdict == Verdict.MATCH else next(iter(answer.playbooks), None),
        share=diagnosis.playbooks[0].share if diagnosis.playbooks else None,
        notices=without_secrets(list(diagnosis.notices)),
        quoted=_quoted(diagnosis, best.why if best else ()),
        left_out=max(0, len(diagnosis.evidence.lines) - _MAX_LINES),
    )


def _row(match: WireMatch) -> Row:
    return Row(match.id, Kind.INCIDENT, match.title, tuple(match.systems))


def _quoted(diagnosis: Diagnosis, why: Iterable[WireWhy]) -> list[Quoted]:
    """The most telling lines and those that support the incident, in the order of the log."""
    supporting = {(one.file, one.line) for one in why}
    masked = enumerate(mask_lines(diagnosis.evidence.lines))
    chosen = [line for place, line in masked if place < _MAX_LINES or _where(line) in supporting]
    ordered = sorted(chosen, key=_where_in_order)
    return [
        Quoted(
            file=mask_secrets(line.file) if line.file else None,
            number=line.number,
            text=line.text,
            supports=_where(line) in supporting,
            skips=before is not None and not _follows(line, before),
        )
        for before, line in zip([None, *ordered], ordered, strict=False)
    ]


def _where(line: EvidenceLine) -> tuple[str | None, int]:
    return line.file, line.number


def _where_in_order(line: EvidenceLine) -> tuple[str, int]:
    return line.file or "", line.number


def _follows(line: EvidenceLine, before: EvidenceLine) -> bool:
    return line.file == before.file and line.number == before.number + 1

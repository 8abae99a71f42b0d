"""The reports worth reading where no record leads: ranked, merged, and none below the bar."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from index.documents import Query
from index.encoder import Encoder
from index.tokens import tokenize
from kb.backlog.library import Asked, Backlog, Found
from kb.backlog.model import Report
from kb.backlog.question import question_of
from kb.backlog.store import Filed
from kb.evidence import Evidence
from kb.evidence.markers import Grade
from kb.lead import Lead

MAX_LEADS = 3
"""Nobody reads more reports at night."""

SHOW_LEADS_AT = 0.5
"""The score of the first lead below which none is shown. `python -m benchmarks.leads` prints what
it keeps out."""
SHOW_BESIDE_AT = 0.2
"""The score below which none is shown beside a first one."""

_MAX_QUOTE_CHARACTERS = 240
_MAX_FIX_CHARACTERS = 600
"""Of what is shown of a report, and of its resolution; the link leads to the rest."""


def find_leads(evidence: Evidence, backlog: Backlog, encoder: Encoder) -> tuple[Lead, ...]:
    """The leads for some evidence, best first; none where all goes well so far."""
    if evidence.made_progress and all(line.grade < Grade.ERROR for line in evidence.lines):
        return ()
    asked, cases = rank(question_of(evidence), backlog, encoder)
    if not cases or cases[0][0].score < SHOW_LEADS_AT:
        return ()
    shown = (case for case in cases[:MAX_LEADS] if case[0].score >= SHOW_BESIDE_AT)
    return tuple(_lead(case, asked) for case in shown)


def rank(query: Query, backlog: Backlog, encoder: Encoder) -> tuple[Asked, list[list[Found]]]:
    """The reports that were found, best first; those of one case together."""
    asked, found = backlog.search(query, encoder)
    cases: list[list[Found]] = []
    for one in found:
        if known := next((case for case in cases if _is_same(case[0], one)), None):
            known.append(one)
        else:
            cases.append([one])
    return asked, cases


def _is_same(first: Found, one: Found) -> bool:
    """Whether two reports are of one case."""
    return _is_same_case(first.filed, one.filed) or (
        first.store is one.store
        and (_repeats(first.filed, one.filed) or _repeats(one.filed, first.filed))
    )


def _is_same_case(one: Filed, other: Filed) -> bool:
    """Whether two print the same lines or bear the same title, and tell no two remedies: two would
    be two cases with one symptom."""
    if not one.case or one.case != other.case:
        return False
    fixes = {filed.report.resolution.quote for filed in (one, other) if filed.report.resolution}
    return len(fixes) < 2


def _repeats(one: Filed, other: Filed) -> bool:
    """Whether one is said to be a duplicate of the other."""
    return one.duplicate_of != "" and one.duplicate_of == other.ticket


def _lead(found: Sequence[Found], asked: Asked) -> Lead:
    report, store = found[0].report, found[0].store
    cases = _whole_case(found)
    solved = next((case for case in cases if case.resolution), None)
    return Lead(
        id=report.id,
        title=report.title,
        url=report.url,
        source=report.source,
        backlog=store.name,
        score=round(found[0].score, 4),
        opened=report.opened,
        resolved=any(case.resolved for case in cases),
        fix=_cut(solved.resolution.quote, _MAX_FIX_CHARACTERS)
        if solved and solved.resolution
        else None,
        fix_by=solved.resolution.role.value if solved and solved.resolution else None,
        fix_from=_where(solved) if solved and solved is not report else None,
        quote=_cut(_matching(report, asked), _MAX_QUOTE_CHARACTERS),
        environment=report.environment,
        seen=sum(case.seen for case in cases),
        also=tuple(_where(case) for case in cases if case is not report),
    )


def _whole_case(found: Sequence[Found]) -> list[Report]:
    """The reports of a case, also those that the question did not bring up; the first one first."""
    first = found[0]
    cases = {_where(one.report): one.report for one in found}
    for other in first.store.case_of(first.number):
        if _repeats(first.filed, other) or _is_same_case(first.filed, other):
            cases.setdefault(_where(other.report), other.report)
    return list(cases.values())


def _where(report: Report) -> str:
    return report.url or report.source


def _matching(report: Report, asked: Asked) -> str:
    """The line of the report that shares most with the question."""
    return max(_said(report), key=lambda line: _shared(line, asked), default=report.title)


def _shared(line: str, asked: Asked) -> float:
    words = set(tokenize(line))
    return sum(asked.rarities.get(word, 0.0) for word in words) / math.sqrt(len(words) + 4)


def _said(report: Report) -> Iterator[str]:
    yield from report.lines
    yield from filter(None, map(str.strip, report.symptom.split("\n")))
    yield report.title


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} ..."

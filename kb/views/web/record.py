"""The page of one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kb.check import Check
from kb.guides import Record
from kb.incident import Incident
from kb.markdown import render
from kb.playbook import Playbook
from kb.views.markup import to_html
from kb.views.web.pages import Pages, place_of

_ROOT = "../"


def record_page(pages: Pages, record: Record, known: Mapping[str, Record]) -> str:
    """The whole record; ids of `known` records lead to their pages."""

    def find_page(identifier: str) -> str | None:
        other = known.get(identifier)
        return f"{_ROOT}{place_of(other)}{pages.ending}" if other else None

    return pages.make(
        "record",
        _ROOT,
        record=record,
        caution=None if isinstance(record, Playbook) else record.header.caution,
        facts=dict(_facts(record)),
        text=to_html(render(record), find_page=find_page),
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    """What the front matter says for people."""
    yield "Kind", record.kind
    if isinstance(record, Incident):
        yield from _of_incident(record)
    elif isinstance(record, Check):
        yield from _of_check(record)
    else:
        yield "People say", "; ".join(record.header.names.en)


def _of_incident(incident: Incident) -> Iterator[tuple[str, str]]:
    header = incident.header
    frameworks = header.environment.frameworks.items()
    yield "Systems", ", ".join(header.systems)
    yield "Versions", ", ".join(f"{name}: {versions}" for name, versions in frameworks)
    yield "Hardware", header.environment.hardware
    yield "Nodes", header.environment.topology
    yield "Fixed in", "; ".join(map(str, header.fixed_in))
    yield "Facts are", header.confidence
    yield "Updated", header.updated.isoformat()


def _of_check(check: Check) -> Iterator[tuple[str, str]]:
    header = check.header
    yield "Answers", header.question
    yield "Where", header.where
    yield "Needs", "; ".join(header.needs)
    yield "Costs", f"{header.cost.seconds} s, {header.cost.risk.in_words}"
    yield "Lost by", ", ".join(header.lost_by)
    yield "Systems", ", ".join(header.systems)

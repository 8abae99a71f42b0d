"""Groups of look-alikes: incidents that one line of a log cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.evidence import Evidence, collect
from kb.evidence.markers import Grade
from kb.incident import Incident, Kind
from kb.log import Block


class LookalikeGroup(msgspec.Struct, frozen=True):
    """Incidents that share a line, and the line as the first of them prints it."""

    line: str
    records: tuple[str, ...]


def lookalikes(incidents: Sequence[Incident], knowledge: KnowledgeBase) -> list[LookalikeGroup]:
    """All groups, by the records in them.

    Two incidents share a line when both have in their evidence a line that states a failure and
    reads the same after masking; or when both declare the same signature, and the evidence of one
    of them has a line with it. The same incidents make one group, however many lines they share.
    """
    chosen = [incident for incident in incidents if incident.kind is Kind.INCIDENT]
    owners = _owners(chosen)
    sharing: dict[str, set[str]] = {}
    printed: dict[str, str] = {}
    for incident, evidence in _evidence(chosen, knowledge):
        for key, text, records in _keys(incident, evidence, owners):
            sharing.setdefault(key, set()).update(records)
            printed.setdefault(key, text)
    groups: dict[frozenset[str], str] = {}
    for key, records in sharing.items():
        if len(records) > 1:
            groups.setdefault(frozenset(records), printed[key])
    return [LookalikeGroup(line, tuple(sorted(records))) for records, line in groups.items()]


def _owners(incidents: Iterable[Incident]) -> dict[str, set[str]]:
    owners: dict[str, set[str]] = {}
    for incident in incidents:
        for signature in incident.header.signatures:
            owners.setdefault(signature.pattern, set()).add(incident.id)
    return owners


def _evidence(
    incidents: Iterable[Incident], knowledge: KnowledgeBase
) -> Iterator[tuple[Incident, Evidence]]:
    for incident in incidents:
        for shown in incident.body.evidence:
            block = Block(None, 1, shown.text.count("\n") + 1, shown.text.encode())
            yield incident, collect([block], knowledge.signatures, knowledge.markers)


def _keys(
    incident: Incident, evidence: Evidence, owners: dict[str, set[str]]
) -> Iterator[tuple[str, str, set[str]]]:
    """What may be shared, the line that shows it, and who has it."""
    for line in evidence.lines:
        if line.grade >= Grade.ERROR:
            yield f"line {line.masked}", line.text, {incident.id}
    for hit in evidence.hits:
        pattern = hit.pattern
        yield f"signature {pattern.text}", hit.line.text, owners.get(pattern.text, set())

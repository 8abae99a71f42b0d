"""The checks and playbooks of the index, and what recognises them. Each part is made when it is
first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from index.documents import Pattern
from index.signatures import Scanner
from index.snapshot import Snapshot
from kb.check import Check
from kb.corpus.check_names import CheckNames
from kb.corpus.guide_document import (
    GuideEntry,
    anchor_scanner,
    from_guide_payload,
    guide_scanner,
)
from kb.corpus.symptom_names import SymptomNames
from kb.corpus.tier import Tier
from kb.guides import Guide
from kb.incident import Incident, Kind
from kb.playbook import Playbook


class _Guides(Mapping[str, Guide]):
    def __init__(self, entries: Mapping[str, GuideEntry]) -> None:
        self._entries = entries

    def __getitem__(self, identifier: str) -> Guide:
        return self._entries[identifier].guide

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class GuideShelf:
    """All guides of one state of their tier.

    Raises:
        KbError: by each part, where the index cannot be read; with one sentence for the user.
    """

    def __init__(self, tier: Tier | None) -> None:
        """Without a tier there are none."""
        self._tier = tier
        self._scanners: dict[str, Scanner] = {}
        self._anchor_scanners: dict[str, Scanner] = {}

    @cached_property
    def _entries(self) -> Mapping[str, GuideEntry]:
        payloads = self._tier.payloads() if self._tier else {}
        return {name: from_guide_payload(payload) for name, payload in payloads.items()}

    @cached_property
    def by_id(self) -> Mapping[str, Guide]:
        """In order of ids; each is read when it is first asked for."""
        return _Guides(self._entries)

    @cached_property
    def playbooks(self) -> list[Playbook]:
        """In order of ids."""
        entries = [one for one in self._entries.values() if one.kind is Kind.PLAYBOOK]
        return [guide for one in entries if isinstance(guide := one.guide, Playbook)]

    @cached_property
    def cases(self) -> Mapping[str, tuple[str, ...]]:
        """The incidents that are special cases of a cause, by `playbook:cause`."""
        return {
            f"{playbook.id}:{cause.key}": cause.incidents
            for playbook in self.playbooks
            for cause in playbook.body.causes
        }

    @cached_property
    def incidents_of(self) -> Mapping[str, frozenset[str]]:
        """The incidents that any cause of a playbook names, by the id of the playbook."""
        return {
            playbook.id: frozenset(
                name for cause in playbook.body.causes for name in cause.incidents
            )
            for playbook in self.playbooks
        }

    def symptoms_of(self, incident: Incident) -> frozenset[str]:
        """The playbooks of what is seen where an incident happens: those that it names, and those
        of whose causes it is one."""
        return self._naming.get(incident.id, frozenset()).union(incident.header.symptoms)

    @cached_property
    def _naming(self) -> Mapping[str, frozenset[str]]:
        """By incident: the playbooks a cause of which names it."""
        naming: dict[str, set[str]] = {}
        for playbook, incidents in self.incidents_of.items():
            for incident in incidents:
                naming.setdefault(incident, set()).add(playbook)
        return {incident: frozenset(playbooks) for incident, playbooks in naming.items()}

    @cached_property
    def patterns(self) -> Scanner:
        """Recognises outputs of checks."""
        return self._tier.read(Snapshot.scanner) if self._tier else Scanner(())

    @cached_property
    def owners(self) -> Mapping[Pattern, tuple[str, ...]]:
        """The ids of the checks that declare each of the `patterns`."""
        return self._tier.read(Snapshot.pattern_owners) if self._tier else {}

    @cached_property
    def symptom_names(self) -> SymptomNames:
        """How people name the symptoms of the playbooks."""
        entries = self._entries.items()
        return SymptomNames({name: entry.names for name, entry in entries if entry.names})

    def anchor_scanner(self, check: Check) -> Scanner:
        """Finds each line by which the output of a check is recognised."""
        if check.id not in self._anchor_scanners:
            self._anchor_scanners[check.id] = anchor_scanner(self._entries[check.id])
        return self._anchor_scanners[check.id]

    @cached_property
    def check_names(self) -> CheckNames:
        """The words by which the checks are told apart."""
        return CheckNames(guide for guide in self.by_id.values() if isinstance(guide, Check))

    def finding_scanner(self, check: Check) -> Scanner:
        """Finds what the output of a check shows, as far as it needs no reader."""
        return self._scanner(check)

    def symptom_lines(self, text: str) -> Mapping[str, frozenset[Pattern]]:
        """By id of the playbook: the lines of its symptom that a text has."""
        return {one.id: self.lines_of_symptom(one, text) for one in self.playbooks}

    def lines_of_symptom(self, playbook: Playbook, text: str) -> frozenset[Pattern]:
        """The lines of one symptom that a text has."""
        scanner = self._scanner(playbook)
        return frozenset(scanner.patterns[number] for number, _end in scanner.scan(text.encode()))

    def _scanner(self, guide: Guide) -> Scanner:
        if guide.id not in self._scanners:
            self._scanners[guide.id] = guide_scanner(self._entries[guide.id])
        return self._scanners[guide.id]

"""The checks and playbooks of the index, and what recognises them. Each part is made when it is
first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from index.documents import Pattern
from index.signatures import Scanner
from index.snapshot import Snapshot
from kb.check import Check
from kb.corpus.check_names import CheckNames
from kb.corpus.guide_document import (
    GuideEntry,
    declared_by,
    from_guide_payload,
    guide_scanner,
)
from kb.corpus.symptom_names import SymptomNames
from kb.corpus.tier import Tier
from kb.guides import Guide
from kb.playbook import Playbook


class GuideShelf:
    """All guides of one state of their tier.

    Raises:
        KbError: by each part, where the index cannot be read; with one sentence for the user.
    """

    def __init__(self, tier: Tier | None) -> None:
        """Without a tier there are none."""
        self._tier = tier
        self._scanners: dict[str, Scanner] = {}

    @cached_property
    def _entries(self) -> Mapping[str, GuideEntry]:
        payloads = self._tier.payloads() if self._tier else {}
        return {name: from_guide_payload(payload) for name, payload in payloads.items()}

    @cached_property
    def by_id(self) -> Mapping[str, Guide]:
        """In order of ids."""
        return {name: entry.guide for name, entry in self._entries.items()}

    @cached_property
    def playbooks(self) -> list[Playbook]:
        """In order of ids."""
        return [guide for guide in self.by_id.values() if isinstance(guide, Playbook)]

    @cached_property
    def cases(self) -> Mapping[str, tuple[str, ...]]:
        """The incidents that are special cases of a cause, by `playbook:cause`."""
        return {
            f"{playbook.id}:{cause.key}": cause.incidents
            for playbook in self.playbooks
            for cause in playbook.body.causes
        }

    @cached_property
    def patterns(self) -> Scanner:
        """Recognises outputs of checks."""
        return self._tier.read(Snapshot.scanner) if self._tier else Scanner(())

    @cached_property
    def owners(self) -> Mapping[Pattern, tuple[str, ...]]:
        """The ids of the checks that declare each of the `patterns`."""
        owners: dict[Pattern, tuple[str, ...]] = {}
        for guide in self.by_id.values():
            if isinstance(guide, Check):
                for pattern in dict.fromkeys(declared_by(guide)):
                    owners[pattern] = (*owners.get(pattern, ()), guide.id)
        return owners

    @cached_property
    def symptom_names(self) -> SymptomNames:
        """How people name the symptoms of the playbooks."""
        entries = self._entries.items()
        return SymptomNames({name: entry.names for name, entry in entries if entry.names})

    @cached_property
    def check_names(self) -> CheckNames:
        """The words by which the checks are told apart."""
        return CheckNames(guide for guide in self.by_id.values() if isinstance(guide, Check))

    def finding_scanner(self, check: Check) -> Scanner:
        """Finds what the output of a check shows, as far as it needs no reader."""
        return self._scanner(check)

    def symptom_lines(self, text: str) -> Mapping[str, frozenset[Pattern]]:
        """By id of the playbook: the lines of its symptom that a text has."""
        data = text.encode()
        seen = {}
        for playbook in self.playbooks:
            scanner = self._scanner(playbook)
            seen[playbook.id] = frozenset(
                scanner.patterns[number] for number, _end in scanner.scan(data)
            )
        return seen

    def _scanner(self, guide: Guide) -> Scanner:
        if guide.id not in self._scanners:
            self._scanners[guide.id] = guide_scanner(guide, self._entries[guide.id].compiled)
        return self._scanners[guide.id]

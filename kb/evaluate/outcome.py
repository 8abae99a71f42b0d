"""A case and what the engine answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Match, diagnose
from kb.evaluate.cases import LabelledReport
from kb.evaluate.expressions import contains
from kb.incident import Incident
from kb.log import Log
from kb.service.wire import with_whole_keys_masked
from kb.verdict import Verdict


class Outcome(msgspec.Struct, frozen=True):
    """What came of one case."""

    case: LabelledReport
    verdict: Verdict
    matches: tuple[Match, ...]
    answerable: bool
    """Whether the library holds a right incident."""

    @property
    def position(self) -> int | None:
        """Where the first right incident stands, from 1; None where none is shown."""
        if not self.case.is_labelled:
            return self.remedy_position
        return self._first(lambda match: match.incident.id in self.case.relevant)

    @property
    def remedy_position(self) -> int | None:
        """Where the first incident stands whose fix holds the remedy that the case asks for."""
        wanted = self.case.fix_must_match
        if wanted is None:
            return None
        return self._first(lambda match: contains(wanted, remedy(match.incident)))

    @property
    def confidence(self) -> float:
        """Confidence of the first match; 0 where none is shown."""
        return self.matches[0].confidence if self.matches else 0.0

    @property
    def is_answer(self) -> bool:
        """Whether the user is told that this is it."""
        return self.verdict is Verdict.MATCH

    @property
    def is_right(self) -> bool:
        """Whether the first match is a right one."""
        return self.position == 1

    def _first(self, fits: Callable[[Match], bool]) -> int | None:
        positions = (position for position, match in enumerate(self.matches, 1) if fits(match))
        return next(positions, None)


def run(
    cases: Iterable[LabelledReport], knowledge: KnowledgeBase, known: Collection[str]
) -> Iterator[Outcome]:
    """Ask the engine each case as a user would; `known` are the ids of the library."""
    for case in cases:
        diagnosis = with_whole_keys_masked(diagnose(Log.from_text(case.text), knowledge))
        answerable = not set(case.relevant).isdisjoint(known)
        yield Outcome(case, diagnosis.verdict, diagnosis.matches, answerable)


def remedy(incident: Incident) -> str:
    """All that a record advises, as one text."""
    body = incident.body
    steps = [f"{step.text}\n{step.command or ''}\n{step.why or ''}" for step in body.fix]
    return "\n".join([*steps, *map(str, incident.header.fixed_in), body.prevention or ""])

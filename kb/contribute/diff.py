"""Compares the ranking of all evidence before and after a change of the incidents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kb.contribute.lint import CheckedFile, read_all
from kb.contribute.lint.context import LintContext, accepted_before
from kb.corpus.directories import IncidentDirectories
from kb.diagnosis import Diagnosis
from kb.incident import Incident, Kind
from kb.problem import Problem
from kb.verdict import ANSWER_AT

_NOTED_POSITION = 1
"""The position of a follow-on error or of noise that is noticed."""


class Rank(msgspec.Struct, frozen=True):
    """Where a block of evidence finds its own record."""

    position: int | None
    """From 1; None where it is not shown."""
    confidence: float | None
    """None for follow-on errors and noise, which are noticed or not."""
    first: str | None
    """The record at position 1."""

    @property
    def is_answer(self) -> bool:
        """At position 1 and above the bar."""
        sure = self.confidence is None or self.confidence >= ANSWER_AT
        return self.position == 1 and sure


class Move(msgspec.Struct, frozen=True):
    """A block of evidence whose ranking differs; None on the side that does not have it."""

    incident: str
    line: str
    """The first line of the block."""
    before: Rank | None
    after: Rank | None

    @property
    def is_worse(self) -> bool:
        """The record lost position 1, fell below the threshold, or ranks lower."""
        if self.before is None or self.after is None:
            return False
        places = [rank.position or 1_000 for rank in (self.before, self.after)]
        return places[1] > places[0] or (self.before.is_answer and not self.after.is_answer)


class Comparison(msgspec.Struct, frozen=True):
    """Two states of the incidents."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    moves: tuple[Move, ...]
    """Worse ones first."""
    asked: int
    """Blocks of evidence that were asked."""
    wrong: tuple[str, ...]
    """Files of which some evidence was not asked, or nothing, because they are no records."""


_Block = tuple[str, str]
"""The id of the owner, and the text."""


def compare(before: IncidentDirectories, after: IncidentDirectories) -> Comparison:
    """Search with all evidence in both states, and return the blocks that rank differently."""
    accepted = accepted_before()
    (old, old_wrong), (new, new_wrong) = (_read(library, accepted) for library in (before, after))
    was, now = ({file.incident.id: file.source for file in files} for files in (old, new))
    common = was.keys() & now.keys()
    is_same = was == now
    ranks_now, now_wrong = ({}, []) if is_same else _ranks(new, after, kept=True)
    ranks_was, was_wrong = ({}, []) if is_same else _ranks(old, before, kept=False)
    problems = (*old_wrong, *new_wrong, *now_wrong, *was_wrong)
    moves = [*_moves(ranks_was, ranks_now)]
    return Comparison(
        added=tuple(sorted(now.keys() - was)),
        changed=tuple(sorted(name for name in common if was[name] != now[name])),
        removed=tuple(sorted(was.keys() - now)),
        moves=tuple(sorted(moves, key=lambda move: (not move.is_worse, move.incident))),
        asked=len(ranks_was.keys() | ranks_now.keys()),
        wrong=tuple(sorted({problem.path for problem in problems})),
    )


def _read(
    library: IncidentDirectories, accepted: Mapping[str, Incident]
) -> tuple[list[CheckedFile], list[Problem]]:
    files, broken = library.in_use()
    checked, problems = read_all(files, accepted, chosen=True)
    return checked, [*broken, *problems]


def _ranks(
    files: list[CheckedFile], library: IncidentDirectories, *, kept: bool
) -> tuple[dict[_Block, Rank], list[Problem]]:
    blocks = [(file, block.text) for file in files for block in file.incident.body.evidence]
    with LintContext(files, library.directories, kept=kept) as context:
        context.encode_ahead([block for _file, block in blocks])
        ranks = {
            (file.incident.id, block): _rank(file, diagnosis)
            for file, block in blocks
            if (diagnosis := context.diagnose(file, block))
        }
        return ranks, context.problems


def _rank(file: CheckedFile, diagnosis: Diagnosis) -> Rank:
    own, found = file.incident.id, [match.incident.id for match in diagnosis.matches]
    first = next(iter(found), None)
    if file.incident.kind is not Kind.INCIDENT:
        noted = own in {note.incident.id for note in diagnosis.notes}
        return Rank(_NOTED_POSITION if noted else None, None, first)
    if own not in found:
        return Rank(None, 0.0, first)
    place = found.index(own)
    return Rank(place + 1, diagnosis.matches[place].confidence, first)


def _moves(was: Mapping[_Block, Rank], now: Mapping[_Block, Rank]) -> Iterator[Move]:
    for incident, block in sorted(was.keys() | now.keys()):
        before, after = was.get((incident, block)), now.get((incident, block))
        if before is None or after is None or _differ(before, after):
            yield Move(incident, block.strip("\n").partition("\n")[0], before, after)


def _differ(before: Rank, after: Rank) -> bool:
    """In position, or on which side of the bar they are."""
    places = (before.position, after.position)
    return places[0] != places[1] or before.is_answer != after.is_answer
